// Values over time, under the timeline and on its scale: a panel per subject, each with its own scale of values, and in it
// the events of the match that is looked at.

import { s } from "../dom.js";
import { scale, steps } from "./scale.js";

const ALONE = 132, AMONG = 84, TOP = 10, BOTTOM = 12, RIGHT = 32;

/** An SVG for each of `lines`, [{ name, points: [{ time, value }] }]; `marks`: [{ name, time, value, lane, gpm }] of the match,
 * by time. */
export function series({ lines, marks, ...place }) {
  const named = lines.length ? lines : [...new Set(marks.map(({ name }) => name))].map((name) => ({ name, points: [] }));
  const height = named.length > 1 ? AMONG : ALONE;
  return named.map((line, i) => panel({ line, marks: marks.filter(({ name }) => name === line.name), number: i, height, ...place })).filter(Boolean);
}

function panel({ line: { name, points }, marks, number, height: HEIGHT, from, to, left, width }) {
  const x = scale(from, to, left, width - RIGHT);
  const seen = [...points, ...marks].filter(({ time }) => time >= from && time <= to).map(({ value }) => value);
  const low = seen.reduce((a, b) => Math.min(a, b), Infinity), high = seen.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!seen.length) return null;
  const y = scale(low, high === low ? low + 1 : high, HEIGHT - BOTTOM, TOP);
  return s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, class: "series", role: "img",
    "aria-label": `Values of ${name} from ${low.toLocaleString("en")} to ${high.toLocaleString("en")}` },
    s("clipPath", { id: `series-clip-${number}` }, s("rect", { x: left - 6, y: 0, width: width - RIGHT - left + 12, height: HEIGHT })),
    steps(low, high, HEIGHT === ALONE ? 4 : 2).map((value) => [
      s("line", { x1: left, x2: width - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
      s("text", { x: left - 12, y: y(value) + 4, class: "tick" }, value.toLocaleString("en", { maximumFractionDigits: 6 })),
    ]),
    s("g", { "clip-path": `url(#series-clip-${number})` }, points.length > 0 &&
      s("polyline", { class: `line line-${number % 6}`, points: points.map(({ time, value }) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join(" ") },
        s("title", {}, name)),
    marks.length > 1 && s("polyline", { class: "join", points: marks.map(({ time, value }) => `${x(time)},${y(value)}`).join(" ") }),
    marks.map(({ time, value, lane, gpm }) => s("circle", { cx: x(time), cy: y(value), r: 5, class: `mark event gpm-${lane % 8}` },
      s("title", {}, `${gpm}: ${value.toLocaleString("en")}`)))));
}
