// The automaton of a SPAseq query: states from left to right by how far they are from the start, waits as arrows, and at
// each state how many groups of partial matches wait there now.

import { s } from "../dom.js";

const STEP = 150, LEVEL = 104, RADIUS = 25, TOP = 66, LEFT = 46, BELOW = 62;

/** An SVG of an explanation's states and edges; `waiting`: groups at each edge, or null. */
export function automaton({ states, edges }, waiting, lanes) {
  const places = placed(states, edges);
  const columns = Math.max(0, ...[...places.values()].map(([x]) => x)) + LEFT + RADIUS;
  const lowest = Math.max(...[...places.values()].map(([, y]) => y));
  const arrows = joined(edges);
  const rise = Math.max(0, ...arrows.map((arrow) => lift(arrow, places)));
  const top = Math.min(0, TOP - RADIUS - rise - 34);
  const drawing = s("svg", { viewBox: `0 ${top} ${columns} ${lowest + BELOW - top}`, width: columns, height: lowest + BELOW - top,
    class: "automaton", role: "img", "aria-label": `Automaton with ${states.length} states` });
  drawing.append(s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    orient: "auto-start-reverse" }, s("path", { d: "M0,0.6 L8,4 L0,7.4 z", class: "head" }))));
  for (const arrow of arrows) drawing.append(drawn(arrow, places));
  const [x, y] = places.get(-1);
  drawing.append(s("circle", { cx: x, cy: y, r: 5, class: "start" }));
  for (const state of states) drawing.append(circle(state, places.get(state.number), counted(edges, waiting, state.number), lanes));
  return drawing;
}

/** Groups that wait in a state: the most of its edges, for a run waits at all of them. */
function counted(edges, waiting, number) {
  const there = edges.flatMap((edge, i) => (edge.source === number ? [waiting?.[i] ?? 0] : []));
  return waiting && there.length ? Math.max(...there) : null;
}

/** State (−1: the start) → [x, y]. */
function placed(states, edges) {
  const rank = new Map([[-1, 0]]);
  const next = [-1];
  for (const source of next) {
    for (const edge of edges.filter((each) => each.source === source)) {
      for (const { target } of edge.arms) {
        if (rank.has(target)) continue;
        rank.set(target, rank.get(source) + 1);
        next.push(target);
      }
    }
  }
  const used = new Map();
  const places = new Map([[-1, [14, TOP]]]);
  for (const { number } of states) {
    const column = rank.get(number) ?? 1;
    const level = used.get(column) ?? 0;
    used.set(column, level + 1);
    places.set(number, [LEFT + column * STEP - 40, TOP + level * LEVEL]);
  }
  return places;
}

/** One arrow for all waits between the same two states. */
function joined(edges) {
  const found = new Map();
  for (const { source, op, arms, guards, age, lasting } of edges) {
    for (const arm of arms) {
      const key = `${source} ${arm.target}`;
      const arrow = found.get(key) ?? { source, target: arm.target, words: [], why: [] };
      arrow.words.push(source < 0 ? arm.letter : `${op} ${arm.letter}`);
      arrow.why.push(...(age ? [age] : []), ...lasting, ...arm.conditions, ...guards.map((guard) => `no ${guard.letter}`));
      if (guards.length) arrow.guarded = guards.map((guard) => guard.letter).join(" ");
      found.set(key, arrow);
    }
  }
  return [...found.values()];
}

/** How high an arrow bends: a little for neighbours, more the further it goes; a loop stands on its state. */
function lift({ source, target }, places) {
  if (source === target) return 34;
  const [x0, y0] = places.get(source), [x1, y1] = places.get(target);
  const far = Math.abs(x1 - x0) / STEP;
  if (y0 !== y1) return 0;
  return x1 > x0 && far < 1.2 ? 0 : 20 + 22 * far;
}

function drawn(arrow, places) {
  const [x0, y0] = places.get(arrow.source), [x1, y1] = places.get(arrow.target);
  const high = lift(arrow, places);
  const [d, tx, ty] = arrow.source === arrow.target ? loop(x0, y0) : high ? bow(x0, y0, x1, y1, high) : line(x0, y0, x1, y1, arrow);
  const label = [...new Set(arrow.words)].join("  ");
  const words = s("text", { x: tx, y: ty, class: "wait" }, label);
  if (arrow.guarded) words.append(s("tspan", { class: "guard" }, `  !${arrow.guarded}`));
  return s("g", { class: "arrow" }, s("title", {}, [label, ...new Set(arrow.why)].join("\n")),
    s("path", { d, "marker-end": "url(#arrow)" }), words);
}

function loop(x, y) {
  const top = y - RADIUS;
  return [`M${x - 11},${top + 3} C${x - 30},${top - 36} ${x + 30},${top - 36} ${x + 11},${top + 3}`, x, top - 32];
}

function bow(x0, y0, x1, y1, high) {
  const top = Math.min(y0, y1) - RADIUS - high;
  return [`M${x0 + 10},${y0 - RADIUS + 2} C${x0 + 30},${top - 6} ${x1 - 30},${top - 6} ${x1 - 10},${y1 - RADIUS + 1}`, (x0 + x1) / 2, top + 4];
}

function line(x0, y0, x1, y1, { source }) {
  const gone = Math.hypot(x1 - x0, y1 - y0), dx = (x1 - x0) / gone, dy = (y1 - y0) / gone;
  const from = source < 0 ? 8 : RADIUS + 2, to = RADIUS + 3;
  return [`M${x0 + dx * from},${y0 + dy * from} L${x1 - dx * to},${y1 - dy * to}`, (x0 + x1) / 2, (y0 + y1) / 2 - 9];
}

function circle({ letter, final, bound }, [x, y], count, lanes) {
  const lane = lanes.indexOf(letter);
  const about = `${letter}${final ? " (a match ends here)" : ""}${bound.length ? `\nknows ${bound.join(", ")}` : ""}`;
  const text = count === null ? (final ? "match" : "") : `${count.toLocaleString("en")} waiting`;
  return s("g", { class: `state${final ? " final" : ""}${count ? " busy" : ""}${lane < 0 ? "" : ` gpm-${lane % 8}`}` }, s("title", {}, about),
    s("circle", { cx: x, cy: y, r: RADIUS }), final && s("circle", { cx: x, cy: y, r: RADIUS - 4.5, class: "inner" }),
    s("text", { x, y: y + 5, class: "letter" }, letter), s("text", { x, y: y + RADIUS + 18, class: "count" }, text));
}
