// The gallery: a small story per example. One click loads its facts, registers its query and pushes its events.

import { queryPath, send, sendJson, streamPath } from "../api.js";
import { byId, fill, h, s } from "../dom.js";
import { refresh } from "../poll.js";
import { state } from "../state.js";
import { tell } from "./notices.js";
import { choose } from "./queries.js";
import { put, seePredicates } from "./workbench.js";

const pace = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 120); // milliseconds between events
let stories = null;

export function startGallery() {
  byId("gallery-open").addEventListener("click", async () => {
    try {
      stories ??= (await (await fetch("/ui/gallery.json", { credentials: "omit" })).json()).stories;
      fill(byId("gallery-stories"), stories.map(card));
      byId("gallery").showModal();
    } catch (problem) {
      tell(problem.message, "bad");
    }
  });
}

const titleOf = (language) => state.languages.find((each) => each.name === language)?.title ?? language;

const sentence = ({ story }) => `${story[0].toUpperCase()}${story.slice(1)}.`;

function card(story) {
  return h("li", { class: "card-event" }, picture(story), h("h3", {}, story.question),
    h("p", { class: "muted" }, `${story.domain} · ${titleOf(story.language)} · ${story.events.length} events`), h("p", {}, sentence(story)),
    h("button", { class: "small", "data-story": story.name, "aria-label": `Start: ${story.question}`, onclick: () => start(story) }, "Start"));
}

const WIDTH = 220, ROW = 12;

/** The events of a story in order: a row for each stream, a dot for each event. */
function picture(story) {
  const streams = streamsOf(story), step = WIDTH / story.events.length;
  const rows = streams.map((_, i) => s("line", { x1: 0, x2: WIDTH, y1: (i + 0.5) * ROW, y2: (i + 0.5) * ROW }));
  const dots = story.events.map(({ stream }, i) => s("circle", { cx: ((i + 0.5) * step).toFixed(1), cy: (streams.indexOf(stream) + 0.5) * ROW, r: 3.5 }));
  return s("svg", { class: "story", viewBox: `0 0 ${WIDTH} ${streams.length * ROW}`, "aria-hidden": "true" }, ...rows, ...dots);
}

async function start(story) {
  byId("gallery").close();
  const name = `example-${story.name}`;
  try {
    if (!(await begin(story, name))) return;
    for (const [i, { stream, quads }] of story.events.entries()) {
      await send(streamPath(stream), { method: "POST", headers: { "Content-Type": "application/n-quads" }, body: quads });
      tell(`${story.question} Event ${i + 1} of ${story.events.length}`);
      await new Promise((resolve) => setTimeout(resolve, pace()));
    }
    const reads = state.queries.find((query) => query.name === name)?.reads ?? []; // also those without an event
    for (const stream of reads) await send(`${streamPath(stream)}?watermark=${encodeURIComponent(story.end)}`, { method: "POST" });
    await refresh();
    seePredicates();
    tell(`${story.question} All events are in. ${sentence(story)}`, "good");
  } catch (problem) {
    tell(`${story.question} ${problem.message}`, "bad");
  }
}

const streamsOf = ({ events }) => [...new Set(events.map(({ stream }) => stream))];

/** The facts, the query and streams without events; false where somebody would rather keep theirs. Examples that read the
 * same streams make room for one another. */
async function begin(story, name) {
  const mine = state.queries.filter((each) => /^example-/.test(each.name) && each.reads?.some((iri) => streamsOf(story).includes(iri)));
  const there = state.streams.filter(({ iri, next }) => streamsOf(story).includes(iri) && next > 0).map(({ iri }) => iri);
  if (there.length && !mine.length && !confirm(`Delete the events of ${there.join(", ")}? The example pushes its own there.`)) return false;
  put(story.text, story.language, name);
  choose(null);
  for (const query of mine) await send(queryPath(query.name), { method: "DELETE" });
  for (const iri of there) await send(streamPath(iri), { method: "DELETE" });
  if (story.kb) await send("/store", { method: "POST", headers: { "Content-Type": "application/n-quads" }, body: story.kb });
  await sendJson("POST", "/queries", { text: story.text, language: story.language, name, ...(story.rules.length ? { rules: story.rules } : {}),
    ...(story.at_once ? { lateness: "1s" } : {}) }); // events of one instant come in two requests: the first one waits for the second
  await refresh();
  choose(name);
  return true;
}
