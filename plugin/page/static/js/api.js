// The server's routes: fetch with the token, refusals as Problem, server-sent events by fetch (which can send a token).

import { eventsOf } from "./rdf.js";
import { askForToken, token } from "./token.js";

/** A refusal: status, title, detail, line, column, findings, the members of RFC 9457 problem details. */
export class Problem extends Error {
  constructor(status, members) {
    super(members.detail || members.title || `status ${status}`);
    Object.assign(this, members, { status });
  }
}

/** The response to a request; where the token is wrong or missing, the user is asked for one and the request is sent again. Throws Problem. */
export async function send(path, { method = "GET", headers = {}, body, signal } = {}) {
  for (;;) {
    const given = token();
    const authorised = given ? { ...headers, Authorization: `Bearer ${given}` } : headers;
    const response = await fetch(path, { method, headers: authorised, body, signal, credentials: "omit" });
    if (response.ok) return response;
    const problem = new Problem(response.status, await members(response));
    const refused = response.status === 401 || (response.status === 403 && problem.title === "the token lacks a right");
    if (!refused || !(await askForToken(problem.message, given))) throw problem;
  }
}

export const getJson = async (path) => (await send(path)).json();

export const sendJson = (method, path, value) =>
  send(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });

export const streamPath = (iri) => `/streams/${encodeURIComponent(iri)}`;
export const queryPath = (name) => `/queries/${encodeURIComponent(name)}`;

/** Solutions of a SPARQL query, an array of objects of terms. */
export async function select(query) {
  const response = await send("/query", {
    method: "POST", body: query,
    headers: { "Content-Type": "application/sparql-query", Accept: "application/sparql-results+json" },
  });
  return (await response.json()).results.bindings;
}

/** At most `limit` matches of a query with ids greater than `after`, in their order. */
export async function matchesOf(name, after, limit, signal) {
  const path = `${queryPath(name)}/matches?after=${after}&limit=${limit}`;
  const text = await (await send(path, { headers: { Accept: "application/x-ndjson" }, signal })).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** The newest `most` events of a stream of the page's state, at the most, in their order. */
export async function newestEvents({ iri, first, next }, most) {
  const path = `${streamPath(iri)}/events?offset=${Math.max(first, next - most)}&limit=${most}`;
  return eventsOf(await (await send(path, { headers: { Accept: "application/n-quads" } })).text());
}

/** Server-sent events, { id, event, data }, until the signal or the server ends them. */
export async function* events(path, signal) {
  const response = await send(path, { headers: { Accept: "text/event-stream" }, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const found = parsed(block);
      if (found.data !== undefined) yield found;
    }
  }
}

function parsed(block) {
  const found = { event: "message" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  return found;
}

async function members(response) {
  try {
    return await response.json();
  } catch {
    return { title: response.statusText };
  }
}
