// The timeline of matches: a lane per GPM with a bar per match from its first event there to its last, and below them the
// matches themselves, packed into rows. Bars are options of a list box: arrows move, Enter chooses.

import { s } from "../dom.js";
import { shortTime } from "../rdf.js";
import { millis, scale, ticks } from "./scale.js";

const LANE = 34, ROW = 11, TOP = 10, RIGHT = 18, AXIS = 30, MOST_ROWS = 10;

/** An SVG of `matches` (as the server sends them); `lanes`: names of GPMs; `chosen`: a match's id. */
export function timeline({ matches, lanes, chosen, width, choose }) {
  const spans = matches.map(span).filter((each) => each !== null);
  if (!spans.length) return null;
  const left = Math.min(150, 26 + 8.2 * Math.max(7, ...lanes.map((lane) => lane.length)));
  const from = Math.min(...spans.map((each) => each.from)), to = Math.max(...spans.map((each) => each.to));
  const pad = (to - from || 1000) * 0.02;
  const x = scale(from - pad, to + pad, left, width - RIGHT);
  const rows = packed(spans, x);
  const below = TOP + lanes.length * LANE + 14;
  const height = below + rows * ROW + AXIS;
  const drawing = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "timeline", role: "listbox",
    "aria-label": "Matches on a timeline" });
  drawing.append(...axis(from - pad, to + pad, x, below + rows * ROW, (width - left) / 110));
  lanes.forEach((lane, i) => drawing.append(...laneOf(lane, i, left, width)));
  drawing.append(s("text", { x: left - 12, y: below + Math.max(rows * ROW, ROW) / 2 + 4, class: "lane-name" }, "match"));
  for (const each of spans) drawing.append(bars(each, lanes, x, below, chosen, choose));
  const top = spans.find((each) => each.match.id === chosen);
  if (top) drawing.append(path(top, lanes, x), drawing.querySelector(".bar[aria-selected=true]"));
  else drawing.querySelector(".bar").setAttribute("tabindex", "0");
  drawing.addEventListener("keydown", (event) => move(event, drawing));
  return drawing;
}

/** Where a match's events are: { match, from, to, of: GPM → [first, last] }, or null without events. */
function span(match) {
  const of = new Map();
  for (const [gpm, events] of Object.entries(match.events)) {
    const times = events.map(({ time }) => millis(time));
    if (times.length) of.set(gpm, [Math.min(...times), Math.max(...times)]);
  }
  const all = [...of.values()].flat();
  return all.length ? { match, of, from: Math.min(...all), to: Math.max(...all), row: 0 } : null;
}

/** Rows in which matches do not overlap, as far as there are rows; returns how many are used. */
function packed(spans, x) {
  const ends = [];
  for (const each of [...spans].sort((a, b) => a.from - b.from)) {
    let row = ends.findIndex((end) => end + 4 < x(each.from));
    if (row < 0) row = ends.length < MOST_ROWS ? ends.length : ends.indexOf(Math.min(...ends));
    ends[row] = x(each.to);
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

function bars(each, lanes, x, below, chosen, choose) {
  const { match, from, to, row } = each;
  const here = match.id === chosen;
  const words = `Match ${match.id}, ${shortTime(new Date(from).toISOString())} to ${shortTime(match.at)}`;
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
  return group;
}

/** From event to event of the match that is looked at. */
function path({ of }, lanes, x) {
  const places = lanes.flatMap((lane, i) => (of.has(lane) ? of.get(lane).map((time) => [x(time), TOP + i * LANE + LANE / 2]) : []));
  return s("polyline", { points: places.sort((a, b) => a[0] - b[0]).map((each) => each.join(",")).join(" "), class: "path" });
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
