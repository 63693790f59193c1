// The automaton of a SPAseq query: states from left to right by how far they are from the start, waits as arrows with the
// bounds of their gaps, and at each state how many groups of partial matches wait there now. What a trailing negation
// waits for (a bound, or the end of the window) is a state of its own, in which nothing is read.

import { s } from "../dom.js";

const NARROWEST = 150, WIDEST = 380, LEVEL = 104, RADIUS = 25, TOP = 66, LEFT = 46, BELOW = 62;

/** An SVG of an explanation's states and edges; `waiting`: groups at each edge, or null; `width`: what there is room for. */
export function automaton(explanation, waiting, lanes, width = 0) {
  const states = [...explanation.states, ...ends(explanation.edges)], edges = explanation.edges.map(closing);
  const places = placed(states, edges, width);
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

/** The states that mean "nothing came": one after each state with a trailing negation. */
function ends(edges) {
  return edges.filter((edge) => !edge.arms.length).map((edge) => ({ number: `end ${edge.source}`, letter: "end", final: true, bound: [], end: true }));
}

/** An edge that no event moves along leads to its end. */
function closing(edge) {
  if (edge.arms.length) return edge;
  return { ...edge, op: "", arms: [{ letter: "", target: `end ${edge.source}`, conditions: [edge.age ? `when ${edge.age.replace("up to ", "")} have passed` : "when the window ends"] }] };
}

/** Groups that wait in a state: the most of its edges, for a run waits at all of them. */
function counted(edges, waiting, number) {
  const there = edges.flatMap((edge, i) => (edge.source === number ? [waiting?.[i] ?? 0] : []));
  return waiting && there.length ? Math.max(...there) : null;
}

/** State (−1: the start) → its column: the longest way from the start that visits no state twice. */
function ranked(edges) {
  const rank = new Map();
  const order = []; // each state after all that it leads to, but for repeats
  const visit = (source, above) => {
    if (order.includes(source) || above.has(source)) return;
    for (const edge of edges.filter((each) => each.source === source)) for (const { target } of edge.arms) visit(target, new Set([...above, source]));
    order.push(source);
  };
  visit(-1, new Set());
  for (const source of order.reverse()) {
    rank.set(source, rank.get(source) ?? 0);
    for (const edge of edges.filter((each) => each.source === source)) for (const { target } of edge.arms) {
      if (order.indexOf(target) > order.indexOf(source)) rank.set(target, Math.max(rank.get(target) ?? 0, rank.get(source) + 1));
    }
  }
  return rank;
}

/** State (−1: the start) → [x, y]. */
function placed(states, edges, width) {
  const rank = ranked(edges);
  const used = new Map();
  const places = new Map([[-1, [14, TOP]]]);
  const step = Math.min(WIDEST, Math.max(NARROWEST, (width - LEFT - RADIUS) / Math.max(1, ...rank.values())));
  for (const { number } of states) {
    const column = rank.get(number) ?? 1;
    const level = used.get(column) ?? 0;
    used.set(column, level + 1);
    places.set(number, [LEFT + column * step - 40, TOP + level * LEVEL]);
  }
  return places;
}

/** One arrow for all waits between the same two states. */
function joined(edges) {
  const found = new Map();
  for (const { source, op, arms, guards, age, then, lasting, after } of edges) {
    for (const arm of arms) {
      const key = `${source} ${arm.target}`;
      const arrow = found.get(key) ?? { source, target: arm.target, words: [], bounds: [], why: [] };
      if (arm.letter) arrow.words.push(source < 0 ? arm.letter : `${op} ${arm.letter}`);
      arrow.bounds.push(...(age ? [age] : []), ...lasting.map((each) => each.replace(/^lasts (.*) at most$/, "lasting up to $1")),
        ...(arm.letter || age ? [] : ["until the window ends"]));
      arrow.why.push(...(age ? [`${age}${then ? `, then ${then}` : ""}`] : []), ...(after.length ? [`after ${after.join(", ")}`] : []), ...lasting, ...arm.conditions, ...guards.map((guard) => `no ${guard.letter}`));
      if (guards.length) arrow.guarded = guards.map((guard) => [...after, guard.letter].join(" then ")).join(" ");
      found.set(key, arrow);
    }
  }
  return [...found.values()];
}

/** How high an arrow bends: a little for neighbours, more the further it goes; a loop is above its state. */
function lift({ source, target }, places) {
  if (source === target) return 34;
  const [x0, y0] = places.get(source), [x1, y1] = places.get(target);
  const far = Math.abs(x1 - x0) / nearest(places);
  if (y0 !== y1) return 0;
  return x1 > x0 && far < 1.2 ? 0 : 20 + 22 * far;
}

/** The distance of two columns. */
function nearest(places) {
  const columns = [...new Set([...places.values()].map(([x]) => x))].sort((a, b) => a - b).slice(1);
  return Math.max(NARROWEST, ...columns.slice(1).map((x, i) => x - columns[i]).slice(0, 1));
}

function drawn(arrow, places) {
  const [x0, y0] = places.get(arrow.source), [x1, y1] = places.get(arrow.target);
  const high = lift(arrow, places);
  const [d, tx, ty] = arrow.source === arrow.target ? loop(x0, y0) : high ? bow(x0, y0, x1, y1, high) : line(x0, y0, x1, y1, arrow);
  const label = [...new Set(arrow.words)].join("  "), bounds = [...new Set(arrow.bounds)];
  const words = s("text", { x: tx, y: ty, class: "wait" }, label);
  if (arrow.guarded) words.append(s("tspan", { class: "guard" }, `${label ? "  " : ""}no ${arrow.guarded}`));
  const below = arrow.source === arrow.target || high ? [tx, ty - 17] : [tx, ty + 27];
  return s("g", { class: "arrow" }, s("title", {}, [label, ...new Set(arrow.why)].join("\n")),
    s("path", { d, "marker-end": "url(#arrow)" }), words,
    bounds.length ? s("text", { x: below[0], y: below[1], class: "limit" }, bounds.join(", ").toLowerCase()) : false);
}

function loop(x, y) {
  const top = y - RADIUS;
  return [`M${x - 11},${top + 3} C${x - 30},${top - 36} ${x + 30},${top - 36} ${x + 11},${top + 3}`, x, top - 32];
}

function bow(x0, y0, x1, y1, high) {
  const top = Math.min(y0, y1) - RADIUS - high;
  return [`M${x0 + 10},${y0 - RADIUS + 2} C${x0 + 30},${top - 6} ${x1 - 30},${top - 6} ${x1 - 10},${y1 - RADIUS + 1}`, (x0 + x1) / 2, top - 1];
}

function line(x0, y0, x1, y1, { source }) {
  const gone = Math.hypot(x1 - x0, y1 - y0), dx = (x1 - x0) / gone, dy = (y1 - y0) / gone;
  const from = source < 0 ? 8 : RADIUS + 2, to = RADIUS + 3;
  return [`M${x0 + dx * from},${y0 + dy * from} L${x1 - dx * to},${y1 - dy * to}`, (x0 + x1) / 2 + (x0 === x1 ? 30 : 0), (y0 + y1) / 2 + (x0 === x1 ? 14 : -9)];
}

function circle({ letter, final, bound, end = false }, [x, y], count, lanes) {
  const lane = end ? -1 : lanes.indexOf(letter);
  const about = `${end ? "nothing came" : letter}${final ? " (a match ends here)" : ""}${bound.length ? `\nknows ${bound.join(", ")}` : ""}`;
  const text = count === null ? (final ? "match" : "") : `${count.toLocaleString("en")} waiting`;
  return s("g", { class: `state${end ? " end" : ""}${final ? " final" : ""}${count ? " busy" : ""}${lane < 0 ? "" : ` gpm-${lane % 8}`}` }, s("title", {}, about),
    s("circle", { cx: x, cy: y, r: RADIUS }), final && s("circle", { cx: x, cy: y, r: RADIUS - 4.5, class: "inner" }),
    s("text", { x, y: y + 5, class: "letter" }, letter), s("text", { x, y: y + RADIUS + 18, class: "count" }, text));
}
