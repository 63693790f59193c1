// A part of a whole as a bar, its count beside it.

import { h } from "../dom.js";

export function share(part, whole) {
  const bar = h("span", { class: "share", role: "presentation" }, h("span", { class: part ? "full" : "full none" }));
  bar.firstChild.style.setProperty("width", `${whole ? Math.max((100 * part) / whole, part ? 2 : 0) : 0}%`);
  return bar;
}
