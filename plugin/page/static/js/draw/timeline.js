// The timeline of matches: a lane per GPM with a bar per match from its first event there to its last, and below them the
// matches themselves, packed into rows, with a line to the time at which they were decided, where that is later. Bars are options of a list box: arrows move, Enter chooses. Where there are too
// many to draw apart it shows how many there are at each time instead; dragging over a stretch zooms into it.

import { s } from "../dom.js";
import { shortTime } from "../rdf.js";
import { millis, scale, ticks } from "./scale.js";

const LANE = 34, ROW = 11, TOP = 10, RIGHT = 32, AXIS = 30, MOST_ROWS = 10, MOST_BARS = 150, COLUMN = 5, DENSE = 60, SHADES = 8, DRAG = 4;

/** Of `matches` (as the server sends them) those within `view` (null: all): { svg, from, to, words }, or null where no
 * match has an event. `lanes`: names of GPMs; `moment`: an instant that is marked
 * (milliseconds), or null; `chosen`: a match's id; `choose` is called with an id, `look` with a view. */
export function timeline({ matches, lanes, moment = null, chosen, view, width, choose, look }) {
  const all = matches.map(span).filter((each) => each !== null);
  if (!all.length) return null;
  const { from, to } = view ?? padded(all);
  const spans = view ? all.filter((each) => each.to >= from && each.from <= to) : all;
  const left = Math.min(150, 26 + 8.2 * Math.max(7, ...lanes.map((lane) => lane.length)));
  const place = { x: scale(from, to, left, width - RIGHT), left, width, from, to };
  const dense = spans.length > MOST_BARS;
  const rows = dense ? 0 : packed(spans, place.x);
  const below = TOP + lanes.length * LANE + 14;
  const bottom = below + (dense ? DENSE : Math.max(rows, 1) * ROW);
  const svg = s("svg", { viewBox: `0 0 ${width} ${bottom + AXIS}`, width, height: bottom + AXIS, class: "timeline",
    role: dense || !spans.length ? "img" : "listbox", "aria-label": dense ? `How many of ${spans.length} matches there are at each time` : "Matches on a timeline" });
  svg.append(...axis(from, to, place.x, bottom, (width - left) / 110));
  lanes.forEach((lane, i) => svg.append(...laneOf(lane, i, left, width)));
  svg.append(s("text", { x: left - 12, y: (below + bottom) / 2 + 4, class: "lane-name" }, "match"));
  svg.append(clip(left, width, bottom));
  const inside = s("g", { "clip-path": "url(#timeline-clip)" });
  svg.append(inside);
  if (dense) inside.append(...densities(spans, lanes, place, below));
  else inside.append(...spans.map((each) => bars(each, lanes, place.x, below, chosen, choose)));
  if (moment !== null) inside.append(s("line", { x1: place.x(moment), x2: place.x(moment), y1: TOP, y2: bottom, class: "now" }));
  const top = spans.find((each) => each.match.id === chosen);
  if (top) inside.append(path(top, lanes, place.x));
  if (top && !dense) inside.append(inside.querySelector(".bar[aria-selected=true]"));
  else inside.querySelector(".bar")?.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => move(event, svg));
  brush(svg, place, bottom, look);
  const words = dense ? `${spans.length.toLocaleString("en")} matches: drag over a stretch to see single ones` : view ? `${spans.length.toLocaleString("en")} in this stretch` : "";
  return { svg, from, to, words };
}

/** The time of all spans, and a little more. */
export function padded(spans) {
  let from = Infinity, to = -Infinity;
  for (const each of spans) {
    from = Math.min(from, each.from);
    to = Math.max(to, each.known);
  }
  const pad = (to - from || 1000) * 0.02;
  return { from: from - pad, to: to + pad };
}

const known = new WeakMap(); // a match → its span: ten thousand are drawn again at each new one

/** Where a match's events are, and when it was known: { match, from, to, known, of: GPM → [first, last] }, or null without
 * events. */
function span(match) {
  if (known.has(match)) return known.get(match);
  const of = new Map();
  let from = Infinity, to = -Infinity;
  for (const [gpm, events] of Object.entries(match.events)) {
    if (!events.length) continue;
    const times = events.map(({ time }) => millis(time));
    const ends = [Math.min(...times), Math.max(...times)];
    of.set(gpm, ends);
    from = Math.min(from, ends[0]);
    to = Math.max(to, ends[1]);
  }
  const found = of.size ? { match, of, from, to, known: Math.max(to, millis(match.at)), row: 0 } : null;
  known.set(match, found);
  return found;
}

/** Rows in which matches do not overlap, as far as there are rows; returns how many are used. */
function packed(spans, x) {
  const ends = [];
  for (const each of [...spans].sort((a, b) => a.from - b.from)) {
    let row = ends.findIndex((end) => end + 4 < x(each.from));
    if (row < 0) row = ends.length < MOST_ROWS ? ends.length : ends.indexOf(Math.min(...ends));
    ends[row] = x(each.known);
    each.row = row;
  }
  return ends.length;
}

function axis(from, to, x, y, most) {
  return ticks(from, to, Math.max(2, most)).flatMap(({ time, text }) => [
    s("line", { x1: x(time), x2: x(time), y1: TOP, y2: y + 6, class: "grid" }),
    s("text", { x: x(time), y: y + 22, class: "tick" }, text),
  ]);
}

function laneOf(lane, i, left, width) {
  const y = TOP + i * LANE;
  return [
    s("rect", { x: left - 4, y: y + 3, width: width - RIGHT - left + 8, height: LANE - 6, rx: 5, class: "lane" }),
    s("text", { x: left - 12, y: y + LANE / 2 + 4, class: `lane-name gpm-${i % 8}` }, lane),
  ];
}

const clip = (left, width, bottom) => s("clipPath", { id: "timeline-clip" },
  s("rect", { x: left - 6, y: 0, width: width - RIGHT - left + 12, height: bottom + 4 }));

function bars(each, lanes, x, below, chosen, choose) {
  const { match, from, to, known, row } = each;
  const here = match.id === chosen;
  const decided = known > to ? `, decided at ${shortTime(match.at)}` : "";
  const words = `Match ${match.id}, ${shortTime(new Date(from).toISOString())} to ${shortTime(new Date(to).toISOString())}${decided}`;
  const group = s("g", { class: here ? "bar chosen" : "bar", role: "option", "aria-selected": String(here), "aria-label": words,
    tabindex: here ? "0" : "-1", "data-match": match.id, onclick: () => choose(match.id) });
  group.append(s("title", {}, words));
  lanes.forEach((lane, i) => {
    const ends = each.of.get(lane);
    if (!ends) return;
    const wide = Math.max(x(ends[1]) - x(ends[0]), 6);
    const begin = (x(ends[0]) + x(ends[1]) - wide) / 2;
    group.append(s("rect", { x: begin, y: TOP + i * LANE + 8, width: wide, height: LANE - 16, rx: 3, class: `event gpm-${i % 8}` }));
  });
  group.append(s("rect", { x: x(from), y: below + row * ROW + 1, width: Math.max(x(to) - x(from), 4), height: ROW - 4, rx: 3, class: "whole" }));
  if (decided) group.append(s("rect", { x: x(to), y: below + row * ROW + ROW / 2 - 1, width: Math.max(x(known) - x(to), 1), height: 1, class: "whole" }));
  return group;
}

/** Per lane and for whole matches: how many begin or lie in each column of a few pixels, darker (lanes) or higher. The
 * columns of one shade are one path; the words of a column are made when somebody points at it. */
function densities(spans, lanes, { x, left, width }, below) {
  const columns = Math.max(1, Math.ceil((width - RIGHT - left) / COLUMN));
  const column = (place) => Math.min(columns - 1, Math.max(0, Math.floor((place - left) / COLUMN)));
  const counts = [...lanes, null].map(() => new Uint32Array(columns));
  for (const each of spans) {
    lanes.forEach((lane, i) => each.of.has(lane) && counts[i][column(x(each.of.get(lane)[0]))]++);
    counts[lanes.length][column(x(each.to))]++;
  }
  const words = s("title");
  return counts.map((row, i) => s("g", { onpointermove: (event) => {
    const count = row[column(event.clientX - event.target.ownerSVGElement.getBoundingClientRect().left)];
    words.textContent = `${count.toLocaleString("en")} ${count === 1 ? "match" : "matches"}`;
    event.currentTarget.append(words);
  } }, i < lanes.length ? shades(row, TOP + i * LANE + 8, left, i) : heights(row, below, left)));
}

function shades(row, y, left, lane) {
  const most = row.reduce((a, b) => Math.max(a, b), 1);
  const paths = Array.from({ length: SHADES + 1 }, () => "");
  row.forEach((count, j) => {
    if (count) paths[Math.ceil(Math.sqrt(count / most) * SHADES)] += bar(left + j * COLUMN, y, LANE - 16);
  });
  return paths.map((d, i) => d && s("path", { d, class: `dense event gpm-${lane % 8}`, opacity: (0.25 + (0.75 * i) / SHADES).toFixed(2) })).filter(Boolean);
}

function heights(row, below, left) {
  const most = row.reduce((a, b) => Math.max(a, b), 1);
  const columns = [...row].map((count, j) => {
    const high = Math.max(2, (count / most) * (DENSE - 6));
    return count ? bar(left + j * COLUMN, below + DENSE - high, high) : "";
  });
  return s("path", { d: columns.join(""), class: "dense whole" });
}

const bar = (x, y, high) => `M${x.toFixed(1)} ${y.toFixed(1)}h${COLUMN - 1}v${high.toFixed(1)}h${1 - COLUMN}z`;

/** From event to event of the match that is looked at. */
function path({ of }, lanes, x) {
  const places = lanes.flatMap((lane, i) => (of.has(lane) ? of.get(lane).map((time) => [x(time), TOP + i * LANE + LANE / 2]) : []));
  return s("polyline", { points: places.sort((a, b) => a[0] - b[0]).map((each) => each.join(",")).join(" "), class: "path" });
}

let began = null; // where a drag began, in pixels of the window; a drawing that replaces this one continues the drag
window.addEventListener("pointerup", () => { began = null; });
window.addEventListener("pointercancel", () => { began = null; });

/** Whether somebody drags over a drawing: it should stay as it is. */
export const isDragged = (place) => place.querySelector(".brush") !== null;

/** Dragging marks a stretch and then looks at it. */
function brush(svg, { x, left, width, from, to }, bottom, look) {
  const time = (place) => from + ((place - x(from)) / (x(to) - x(from))) * (to - from);
  const mark = s("rect", { class: "brush", y: TOP, height: bottom - TOP, width: 0 });
  const at = (clientX) => Math.min(width - RIGHT, Math.max(left, clientX - svg.getBoundingClientRect().left));
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType !== "touch") began = event.clientX; // a finger scrolls
  });
  svg.addEventListener("pointermove", (event) => {
    if (began === null || Math.abs(event.clientX - began) < DRAG) return;
    if (!mark.isConnected) {
      svg.append(mark);
      svg.setPointerCapture(event.pointerId);
    }
    mark.setAttribute("x", Math.min(at(began), at(event.clientX)));
    mark.setAttribute("width", Math.abs(at(event.clientX) - at(began)));
  });
  svg.addEventListener("pointerup", (event) => {
    if (!mark.isConnected) return;
    const ends = [time(at(began)), time(at(event.clientX))].sort((a, b) => a - b);
    mark.remove();
    if (ends[1] > ends[0]) look({ from: ends[0], to: ends[1] });
  });
  svg.addEventListener("pointercancel", () => mark.remove());
}

function move(event, drawing) {
  const all = [...drawing.querySelectorAll(".bar")].sort((a, b) => a.dataset.match - b.dataset.match);
  const at = all.indexOf(drawing.getRootNode().activeElement);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step && at >= 0) all[Math.min(Math.max(at + step, 0), all.length - 1)].focus();
  else if ((event.key === "Enter" || event.key === " ") && at >= 0) all[at].dispatchEvent(new MouseEvent("click"));
  else return;
  event.preventDefault();
}
