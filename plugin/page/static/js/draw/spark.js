// A small curve of the last rates.

import { s } from "../dom.js";

const WIDTH = 84, HEIGHT = 22;

export function spark(values) {
  const most = Math.max(1, ...values);
  const x = (i) => (i / Math.max(1, values.length - 1)) * WIDTH;
  const y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 4);
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`);
  return s("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" },
    points.length > 1 && s("polygon", { points: `0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}` }),
    points.length > 1 && s("polyline", { points: points.join(" ") }));
}
