// Places of a result: points by longitude and latitude with a grid of degrees. No tiles: nothing comes from another host.

import { s } from "../dom.js";
import { isNumber, shortTerm } from "../rdf.js";
import { scale, steps } from "./scale.js";

const WIDTH = 640, MARGIN = 46, MOST = 2000;
const LATITUDE = /^(lat|latitude|y)$/i, LONGITUDE = /^(lon|lng|long|longitude|x)$/i;
const POINT = /^(?:<[^>]*>\s*)?POINT\s*\(\s*(-?[\d.]+)[\s,]+(-?[\d.]+)\s*\)$/i;

/** The rows that have a place, [{ lat, lon, row }]: WKT points, or columns called lat and lon (or longer). */
export function placesIn(names, rows) {
  const lat = names.find((name) => LATITUDE.test(name)), lon = names.find((name) => LONGITUDE.test(name));
  const found = [];
  for (const row of rows.slice(0, MOST)) {
    const wkt = Object.values(row).map((term) => POINT.exec(term.value)).find(Boolean);
    if (wkt) found.push({ lon: Number(wkt[1]), lat: Number(wkt[2]), row });
    else if (lat && lon && isNumber(row[lat]) && isNumber(row[lon])) found.push({ lon: Number(row[lon].value), lat: Number(row[lat].value), row });
  }
  return found.filter(({ lat: y, lon: x }) => Math.abs(y) <= 90 && Math.abs(x) <= 180);
}

/** An SVG of places, as wide as they are apart. */
export function map(places, prefixes) {
  const wests = places.map(({ lon }) => lon), souths = places.map(({ lat }) => lat);
  const west = Math.min(...wests), east = Math.max(...wests), south = Math.min(...souths), north = Math.max(...souths);
  const pad = Math.max(east - west, north - south, 0.01) * 0.06;
  const wide = east - west + 2 * pad, squeeze = Math.cos((((south + north) / 2) * Math.PI) / 180) || 1;
  const height = Math.min(520, Math.max(160, ((north - south + 2 * pad) / (wide * squeeze)) * (WIDTH - MARGIN)));
  const x = scale(west - pad, east + pad, MARGIN, WIDTH - 10), y = scale(south - pad, north + pad, height - 24, 8);
  return s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, class: "chart map", role: "img", "aria-label": `${places.length} places` },
    steps(west - pad, east + pad, 5).map((degree) => [s("line", { x1: x(degree), x2: x(degree), y1: 8, y2: height - 24, class: "grid" }),
      s("text", { x: x(degree), y: height - 8, class: "tick" }, `${degree}°`)]),
    steps(south - pad, north + pad, 5).map((degree) => [s("line", { x1: MARGIN, x2: WIDTH - 10, y1: y(degree), y2: y(degree), class: "grid" }),
      s("text", { x: MARGIN - 6, y: y(degree) + 4, class: "tick end" }, `${degree}°`)]),
    places.map(({ lat, lon, row }) => s("circle", { cx: x(lon), cy: y(lat), r: 5, class: "place" },
      s("title", {}, Object.entries(row).map(([name, term]) => `${name}: ${shortTerm(term, prefixes)}`).join("\n")))));
}
