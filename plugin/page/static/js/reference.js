// The server's OpenAPI document as a page that people read.

import { getJson } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { tell } from "./panels/notices.js";

const METHODS = ["get", "put", "post", "patch", "delete"];

function typed(schema = {}) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" or ");
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map(typed).join(" or ");
  return [schema.type === "array" ? `list of ${typed(schema.items)}` : schema.type, schema.format && `(${schema.format})`].filter(Boolean).join(" ");
}

const list = (title, rows) => (rows.length ? [h("h3", {}, title), h("dl", { class: "members" }, rows.map(([name, kind, words]) => [
  h("dt", {}, h("code", {}, name), kind ? h("span", { class: "muted" }, ` ${kind}`) : []), h("dd", {}, words ?? "")]))] : []);

function route(path, method, { summary, description, parameters = [], requestBody, responses = {} }) {
  return h("details", { class: "card entry" }, h("summary", {}, h("span", { class: `method ${method}` }, method.toUpperCase()), h("code", { class: "path" }, path)),
    h("div", { class: "inside" }, [summary, description].filter(Boolean).map((text) => h("p", {}, text)),
      list("Parameters", parameters.map((each) => [each.name, `${each.in}, ${typed(each.schema)}${each.required ? ", required" : ""}`, each.description])),
      list("Body", Object.keys(requestBody?.content ?? {}).map((type) => [type, "", typed(requestBody.content[type].schema)])),
      list("Answers", Object.entries(responses).map(([status, each]) => [status, Object.keys(each.content ?? {}).join(", "), each.description]))));
}

function schema(name, { properties = {}, required = [], description }) {
  return h("details", { class: "card entry" }, h("summary", {}, h("code", {}, name)), h("div", { class: "inside" }, description ? h("p", {}, description) : [],
    list("Members", Object.entries(properties).map(([member, each]) => [member, `${typed(each)}${required.includes(member) ? ", required" : ""}`, each.description]))));
}

try {
  const { paths, components = {} } = await getJson("/openapi.json");
  const routes = Object.entries(paths).flatMap(([path, methods]) => METHODS.filter((method) => methods[method]).map((method) => route(path, method, methods[method])));
  const schemas = Object.entries(components.schemas ?? {}).filter(([, each]) => each.properties).map(([name, each]) => schema(name, each));
  fill(byId("routes"), h("h2", {}, "Routes"), routes, schemas.length ? [h("h2", {}, "Objects"), schemas] : []);
} catch (problem) {
  tell(problem.message, "bad");
}
document.body.dataset.ready = "true";
