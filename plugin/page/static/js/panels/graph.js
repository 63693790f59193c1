// A small RDF graph as lines: subjects once, predicates and objects below one another.

import { h } from "../dom.js";
import { isNumber, shortTerm } from "../rdf.js";

export function graph(triples) {
  const subjects = Map.groupBy ? Map.groupBy(triples, ([subject]) => subject.value) : grouped(triples);
  return h("div", { class: "graph" }, [...subjects.values()].map((group) => [
    h("div", { class: "subject", title: group[0][0].value }, shortTerm(group[0][0])),
    h("dl", {}, group.flatMap(([, predicate, object]) => [
      h("dt", { title: predicate.value }, shortTerm(predicate)),
      h("dd", { title: object.value, class: isNumber(object) ? "number" : null }, shortTerm(object)),
    ])),
  ]));
}

function grouped(triples) {
  const found = new Map();
  for (const triple of triples) found.set(triple[0].value, [...(found.get(triple[0].value) ?? []), triple]);
  return found;
}
