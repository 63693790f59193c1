// A small RDF graph as nodes and arrows. Places come from a few hundred steps of forces: nodes repel, arrows pull.

import { s } from "../dom.js";
import { shortIri, shortTerm } from "../rdf.js";

const MOST = 120, HEIGHT = 360, STEPS = 260, MARGIN = 70;

/** An SVG of `triples`, [[subject, predicate, object]]; of more than 120 the first are drawn. */
export function network(triples, prefixes, width) {
  const drawn = triples.slice(0, MOST);
  const nodes = new Map();
  const node = (term) => {
    const key = `${term.type} ${term.value}`;
    if (!nodes.has(key)) nodes.set(key, { term, x: width / 2 + Math.cos(nodes.size * 2.4) * (20 + 6 * nodes.size), y: HEIGHT / 2 + Math.sin(nodes.size * 2.4) * (20 + 4 * nodes.size) });
    return nodes.get(key);
  };
  const arrows = drawn.map(([subject, predicate, object]) => ({ from: node(subject), to: node(object), predicate }));
  settle([...nodes.values()], arrows, width);
  const words = triples.length > MOST ? `The first ${MOST} of ${triples.length.toLocaleString("en")} triples` : `${triples.length} triples`;
  return s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, class: "network", role: "img", "aria-label": words },
    s("defs", {}, s("marker", { id: "network-arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, s("path", { d: "M0,0.6 L8,4 L0,7.4 z", class: "head" }))),
    arrows.map((arrow) => edge(arrow, prefixes)),
    [...nodes.values()].map(({ term, x, y }) => s("g", { class: `node ${term.type}` }, s("title", {}, term.value), s("circle", { cx: x, cy: y, r: term.type === "literal" ? 4 : 7 }),
      s("text", { x, y: y - 11, class: "node-name" }, clipped(shortTerm(term, prefixes))))),
    triples.length > MOST ? s("text", { x: 12, y: 20, class: "tick start" }, words) : false);
}

function edge({ from, to, predicate }, prefixes) {
  const far = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const dx = (to.x - from.x) / far, dy = (to.y - from.y) / far;
  return s("g", {}, s("title", {}, predicate.value), s("line", { x1: from.x + dx * 8, y1: from.y + dy * 8, x2: to.x - dx * 9, y2: to.y - dy * 9, class: "arrow", "marker-end": "url(#network-arrow)" }),
    s("text", { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 4, class: "predicate" }, clipped(shortIri(predicate.value, prefixes))));
}

const clipped = (text) => (text.length > 26 ? `${text.slice(0, 25)}…` : text);

function settle(nodes, arrows, width) {
  const ideal = Math.min(105, Math.sqrt((width * HEIGHT) / Math.max(1, nodes.length)));
  for (let step = 0; step < STEPS; step++) {
    const most = 14 * (1 - step / STEPS) + 0.4;
    for (const each of nodes) {
      each.dx = (width / 2 - each.x) * 0.012;
      each.dy = (HEIGHT / 2 - each.y) * 0.02;
      for (const other of nodes) push(each, other, ideal);
    }
    for (const { from, to } of arrows) pull(from, to, ideal);
    for (const each of nodes) {
      const far = Math.hypot(each.dx, each.dy) || 1;
      each.x = Math.min(width - MARGIN, Math.max(MARGIN, each.x + (each.dx / far) * Math.min(far, most)));
      each.y = Math.min(HEIGHT - 20, Math.max(26, each.y + (each.dy / far) * Math.min(far, most)));
    }
  }
}

function push(each, other, ideal) {
  if (each === other) return;
  const x = each.x - other.x || 0.1, y = each.y - other.y || 0.1, square = x * x + y * y;
  each.dx += (x / square) * ideal * ideal * 0.35;
  each.dy += (y / square) * ideal * ideal * 0.35;
}

function pull(from, to, ideal) {
  const x = to.x - from.x, y = to.y - from.y, strength = (Math.hypot(x, y) / ideal) * 0.08;
  from.dx += x * strength;
  from.dy += y * strength;
  to.dx -= x * strength;
  to.dy -= y * strength;
}
