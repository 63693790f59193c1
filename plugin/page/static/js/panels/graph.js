// A small RDF graph as lines: subjects once, predicates and objects below one another. What a pattern matched comes first
// and is marked.

import { h } from "../dom.js";
import { isNumber, shortTerm } from "../rdf.js";

/** `matched`: numbers of the triples that were matched, or null where that is not known. */
export function graph(triples, matched = null) {
  const hits = new Set((matched ?? []).map((number) => triples[number]));
  const ordered = hits.size ? [...triples.filter((each) => hits.has(each)), ...triples.filter((each) => !hits.has(each))] : triples;
  const subjects = Map.groupBy ? Map.groupBy(ordered, ([subject]) => subject.value) : grouped(ordered);
  return h("div", { class: "graph" }, [...subjects.values()].map((group) => [
    h("div", { class: "subject", title: group[0][0].value }, shortTerm(group[0][0])),
    h("dl", {}, group.flatMap((triple) => {
      const [, predicate, object] = triple, hit = hits.has(triple) ? "hit" : null;
      return [
        h("dt", { title: predicate.value, class: hit }, shortTerm(predicate)),
        h("dd", { title: hit ? `${object.value} (matched)` : object.value, class: [isNumber(object) && "number", hit].filter(Boolean).join(" ") || null },
          hit ? h("mark", {}, shortTerm(object)) : shortTerm(object)),
      ];
    })),
  ]));
}

function grouped(triples) {
  const found = new Map();
  for (const triple of triples) found.set(triple[0].value, [...(found.get(triple[0].value) ?? []), triple]);
  return found;
}
