// Numbers of a result: a line over times or numbers, bars over names.

import { s } from "../dom.js";
import { isNumber, shortTerm, XSD } from "../rdf.js";
import { millis, scale, steps, ticks } from "./scale.js";

const HEIGHT = 240, TOP = 12, BOTTOM = 34, LEFT = 74, RIGHT = 18, MOST = 2000, MOST_BARS = 60;

const isTime = (term) => term?.datatype === `${XSD}dateTime` || term?.datatype === `${XSD}date`;

/** { x, numeric }: the column along the bottom and those that can be drawn, or null where no column has numbers only. */
export function chartable(names, rows) {
  const of = (test) => names.filter((name) => rows.length > 1 && rows.every((row) => !row[name] || test(row[name])) && rows.some((row) => row[name]));
  const numeric = of(isNumber);
  if (!numeric.length) return null;
  const x = of(isTime)[0] ?? names.find((name) => !numeric.includes(name)) ?? (numeric.length > 1 ? numeric[0] : null);
  const drawn = numeric.filter((name) => name !== x);
  return x && drawn.length ? { x, numeric: drawn } : null;
}

/** An SVG of the column `y` over `x`. */
export function chart(rows, x, y, width) {
  const shown = rows.filter((row) => row[x] && row[y]).slice(0, MOST);
  const timed = shown.every((row) => isTime(row[x])), counted = shown.every((row) => isNumber(row[x]));
  if (!timed && !counted) shown.splice(MOST_BARS);
  const values = shown.map((row) => Number(row[y].value));
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const up = scale(low, high === low ? low + 1 : high, HEIGHT - BOTTOM, TOP);
  const svg = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, class: "chart", role: "img", "aria-label": `${y} over ${x}` },
    steps(low, high, 5).map((value) => [
      s("line", { x1: LEFT, x2: width - RIGHT, y1: up(value), y2: up(value), class: "grid" }),
      s("text", { x: LEFT - 8, y: up(value) + 4, class: "tick end" }, value.toLocaleString("en", { maximumFractionDigits: 6 })),
    ]));
  if (timed || counted) svg.append(...line(shown.map((row, i) => ({ at: timed ? millis(row[x].value) : Number(row[x].value), value: values[i] })), up, width, timed));
  else svg.append(...columns(shown.map((row, i) => ({ name: shortTerm(row[x]), value: values[i] })), up, width));
  return svg;
}

function line(points, up, width, timed) {
  points.sort((a, b) => a.at - b.at);
  const from = points[0].at, to = points.at(-1).at;
  const x = scale(from, to, LEFT, width - RIGHT);
  const marks = timed ? ticks(from, to, width / 120) : steps(from, to, width / 120).map((value) => ({ time: value, text: value.toLocaleString("en") }));
  return [
    ...marks.map(({ time, text }) => s("text", { x: x(time), y: HEIGHT - 12, class: "tick" }, text)),
    s("polyline", { class: "line", points: points.map(({ at, value }) => `${x(at).toFixed(1)},${up(value).toFixed(1)}`).join(" ") }),
  ];
}

function columns(bars, up, width) {
  const wide = (width - RIGHT - LEFT) / bars.length;
  return bars.map(({ name, value }, i) => s("g", {}, s("title", {}, `${name}: ${value.toLocaleString("en")}`),
    s("rect", { x: LEFT + i * wide + wide * 0.1, width: Math.max(1, wide * 0.8), y: Math.min(up(value), up(0)), height: Math.max(1, Math.abs(up(value) - up(0))), class: "column" }),
    wide > 46 && s("text", { x: LEFT + (i + 0.5) * wide, y: HEIGHT - 12, class: "tick" }, name.length > wide / 7 ? `${name.slice(0, Math.floor(wide / 7) - 1)}…` : name)));
}
