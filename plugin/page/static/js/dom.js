// Elements in one line each; text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: h("button", { class: "primary", onclick: run }, "Run"). null and false children are left out. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** An element's children replaced by others. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== false));
}

/** The same where most children are there already: those stay in place, so that the browser lays out only what is new. */
export function arrange(element, children) {
  const wanted = new Set(children);
  for (const child of [...element.childNodes]) if (!wanted.has(child)) child.remove();
  children.forEach((child, i) => element.childNodes[i] === child || element.insertBefore(child, element.childNodes[i] ?? null));
}

export const byId = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A long name that may be broken behind its slashes, and not inside words. */
export const breakable = (text) => h("span", {}, text.split(/(?<=[/#])/).flatMap((part) => [part, h("wbr")]));

/** A table whose heads are above their numbers: on the right where the first row has one. */
export function aligned(table) {
  const cells = table.querySelector("tbody tr")?.cells ?? [];
  [...cells].forEach((cell, i) => table.querySelectorAll("thead th")[i]?.classList.toggle("number", cell.classList.contains("number")));
  return table;
}
