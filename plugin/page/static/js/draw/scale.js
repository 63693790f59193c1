// From times to places, and ticks that people would have chosen.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [
  1, 10, 100, SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR,
  6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY, 3650 * DAY,
];

/** Milliseconds (with fractions) of an xsd:dateTime. */
export const millis = (text) => Date.parse(text.replace(/(\.\d{3})\d+/, "$1"));

/** A linear scale: times `from`..`to` to places `left`..`right`. */
export function scale(from, to, left, right) {
  const span = to - from || 1;
  return (time) => left + ((time - from) / span) * (right - left);
}

/** At most `most` round times within, and their labels. */
export function ticks(from, to, most) {
  const step = STEPS.find((each) => (to - from) / each <= most) ?? STEPS.at(-1);
  const found = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) found.push({ time, text: label(time, step) });
  return found;
}

function label(time, step) {
  const text = new Date(time).toISOString();
  if (step >= DAY) return text.slice(0, 10);
  if (step >= MINUTE) return text.slice(11, 16);
  if (step >= SECOND) return text.slice(11, 19);
  return text.slice(11, 23);
}

/** At most `most` + 1 round values from `low` to `high`. */
export function steps(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}
