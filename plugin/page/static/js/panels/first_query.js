// A first query over a stream: two events of one thing, of which the second has a greater number.

import { isNumber } from "../rdf.js";

/** SPAseq text over the properties of the given events of the stream `iri`. */
export function firstQuery(iri, events) {
  const found = new Map(); // predicate → whether its values are numbers
  for (const { triples } of events) for (const [, predicate, object] of triples) if (!found.has(predicate.value)) found.set(predicate.value, isNumber(object));
  const numbers = [...found].filter(([, number]) => number).slice(0, 1), keys = [...found].filter(([, number]) => !number).slice(0, 1);
  const own = new Set(events.flatMap(({ triples }) => triples.filter(([subject]) => subject.type === "uri").map(([subject]) => subject.value)));
  const base = (numbers[0] ?? keys[0] ?? [""])[0].replace(/[^/#]*$/, "");
  const named = own.size > 0 && own.size < events.length; // things that recur: their IRI is what two events have in common
  const gpm = (name, step, filter) => {
    const shared = named ? [] : keys;
    const read = [...shared.map(([p]) => `${short(p, base)} ?${word(p)}`), ...numbers.map(([p]) => `${short(p, base)} ?${step}`)];
    const subject = named ? "?thing" : "[";
    return `  DEFINE GPM ${name} ON S { ${subject} ${read.join(" ; ") || "?property ?value"}${named ? "" : " ]"}${filter} }`;
  };
  const shown = [named ? "?thing" : keys[0] && `?${word(keys[0][0])}`, numbers.length && "?first", numbers.length && "?second"].filter(Boolean);
  return `PREFIX : <${base}>
SELECT ${shown.join(" ") || "*"} WITHIN 10 MINUTES SLIDING
FROM STREAM S <${iri}>
WHERE {
  SEQ(A; B)
${gpm("A", "first", "")}
${gpm("B", "second", numbers.length ? " FILTER(?second > ?first)" : "")}
}
`;
}

const short = (iri, base) => (base && iri.startsWith(base) && /^[A-Za-z][\w-]*$/.test(iri.slice(base.length)) ? `:${iri.slice(base.length)}` : `<${iri}>`);
const word = (iri) => iri.replace(/^.*[/#]/, "").replace(/\W/g, "_").replace(/^(?=\d|$)/, "v");
