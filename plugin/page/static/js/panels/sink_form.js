// The form of a sink: its kinds and settings are those that the server's description of itself has (schema NewSink).

import { Problem } from "../api.js";
import { fill, h } from "../dom.js";
import { state } from "../state.js";

const SHOWN = ["template", "secret", "user", "password"]; // beside what is required; the rest is folded

/** A form in `place`; `none`: the words for "no sink", or null where there must be one. Returns { value(), reset() }:
 * value() is { id, settings }, or null for no sink, and throws a Problem that says what is missing. */
export function sinkForm(place, prefix, none = null) {
  const kinds = () => state.sinkKinds;
  const kind = h("select", { id: `${prefix}-kind`, onchange: () => draw() });
  const id = h("input", { id: `${prefix}-id`, size: "12", autocomplete: "off", spellcheck: "false" });
  const fields = h("div", { class: "fields" });
  const folded = h("div", { class: "fields" }), more = h("details", { class: "more" }, h("summary", {}, "More settings"), folded);
  const named = h("label", {}, h("span", {}, "Name of the sink"), id);
  let boxes = new Map();

  function draw() {
    const schema = kinds().find(({ title }) => title === kind.value);
    boxes = new Map();
    named.hidden = more.hidden = !schema;
    const { properties = {}, required = [] } = schema ?? {};
    const parts = { near: [], far: [] };
    for (const [name, property] of Object.entries(properties)) {
      if (name === "kind") continue;
      const box = boxOf(property, `${prefix}-${name}`);
      boxes.set(name, { box, property, required: required.includes(name) });
      const label = h("label", { title: property.description }, h("span", {}, required.includes(name) ? `${wordOf(name)} *` : wordOf(name)), box);
      parts[required.includes(name) || SHOWN.includes(name) ? "near" : "far"].push(label);
    }
    fill(fields, parts.near);
    fill(folded, parts.far);
  }

  function reset() {
    fill(kind, none === null ? [] : h("option", { value: "" }, none), kinds().map(({ title }) => h("option", { value: title }, title)));
    id.value = "";
    draw();
  }

  function value() {
    if (!kind.value) return null;
    if (!id.value.trim()) throw new Problem(0, { title: "Give the sink a name." });
    const settings = { kind: kind.value };
    for (const [name, { box, property, required }] of boxes) {
      const given = valueOf(box, property, name);
      if (given !== undefined) settings[name] = given;
      else if (required) throw new Problem(0, { title: `The sink needs ${wordOf(name).toLowerCase()}.` });
    }
    return { id: id.value.trim(), settings };
  }

  fill(place, h("div", { class: "fields" }, h("label", {}, h("span", {}, "Deliver matches to"), kind), named), fields, more);
  reset();
  return { value, reset };
}

const wordOf = (name) => (name === "url" ? "URL" : `${name[0].toUpperCase()}${name.slice(1).replaceAll("_", " ")}`);

function boxOf({ enum: words, type, writeOnly }, id) {
  if (type === "boolean") return h("input", { id, type: "checkbox" });
  if (words) return h("select", { id }, h("option", { value: "" }, "as usual"), words.map((word) => h("option", { value: String(word) }, String(word))));
  return h("input", { id, type: writeOnly ? "password" : type === "integer" ? "number" : "text", autocomplete: "off", spellcheck: "false" });
}

/** The JSON value of a box; undefined where it is empty. */
function valueOf(box, { type, enum: words, oneOf }, name) {
  if (type === "boolean") return box.checked || undefined;
  const text = box.value.trim();
  if (!text) return undefined;
  if (words) return words.find((word) => String(word) === text);
  if (type === "integer") return Number(text);
  if (type === "array") return text.split(",").map((part) => part.trim()).filter(Boolean);
  if (type === "object" || (oneOf && text.startsWith("{")) || (name === "template" && /^[[{"]/.test(text))) return parsed(text, name);
  return text;
}

function parsed(text, name) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(0, { title: `${wordOf(name)} is no JSON: ${error.message}` });
  }
}
