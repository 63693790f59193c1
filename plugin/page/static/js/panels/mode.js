// What this server does not do, in one line: read-only, without streams, or in front of another endpoint.

import { send } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { shortTime } from "../rdf.js";
import { on, set, state } from "../state.js";
import { tell } from "./notices.js";

export function startMode() {
  on(["server", "kb"], show);
}

function show() {
  const words = said(state.server);
  const place = byId("mode");
  place.hidden = !words;
  fill(place, words ?? [], state.server.upstream && state.server.live ? [" ", answers(), " ",
    h("button", { class: "link", onclick: askAgain }, "Ask again")] : []);
}

function said({ live, read_only, upstream }) {
  const where = upstream ? "Queries are passed on to another endpoint" : "Queries are answered";
  if (read_only) return `Read-only: ${where.toLowerCase()}; updates are refused, and there are no streams and no continuous queries.`;
  if (live === false) return `${where}; this server has no streams and no continuous queries.`;
  if (upstream) return "SPARQL is passed on to another endpoint. Continuous queries go by what it answered last:";
  return null;
}

function answers() {
  const { kb } = state;
  if (!kb?.asked) return "nothing yet.";
  const failed = kb.error ? h("span", { class: "bad" }, ` It does not answer now: ${kb.error}.`) : null;
  return [`${kb.answers} ${kb.answers === 1 ? "pattern" : "patterns"}, asked ${shortTime(kb.asked)}.`, failed];
}

async function askAgain() {
  try {
    set({ kb: await (await send("/kb/refresh", { method: "POST" })).json() });
    tell("The endpoint has been queried again: its answers hold for events from now on.", "good");
  } catch (problem) {
    tell(problem.message, "bad");
  }
}
