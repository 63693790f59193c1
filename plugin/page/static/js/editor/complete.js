// What is offered while one types: prefixes, streams, GPM names, variables, predicates that were seen, words.

import { PREFIXES, declared, shortIri } from "../rdf.js";
import { state } from "../state.js";
import { FUNCTION_NAMES, keywordsOf } from "./words.js";

/** A source for CodeMirror's autocompletion; `language` says which language the text is in. */
export const completions = (language) => (context) => {
  const text = context.state.doc.toString();
  const before = context.matchBefore(/\bPREFIX\s+[\w.-]*$/i);
  if (before) return offered(context, /[\w.-]*$/, prefixes(text));
  if (context.matchBefore(/<[^<>\s]*$/)) return offered(context, /<[^<>\s]*$/, iris(), true);
  if (context.matchBefore(/[?$]\w*$/)) return offered(context, /[?$]\w*$/, variables(text));
  if (context.matchBefore(/(SEQ\s*\([^)]*|(TIMEOF|COUNT|FIRST|LAST)\(\w*|MATCH\s*\{[^}]*)$/i)) {
    return offered(context, /\w*$/, gpms(text));
  }
  const word = context.matchBefore(/[\w.-]*:?[\w.-]*$/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  return offered(context, /[\w.-]*:?[\w.-]*$/, [...predicates(text), ...gpms(text), ...words(language())]);
};

function offered(context, pattern, options, always = false) {
  const typed = context.matchBefore(pattern);
  if (!always && !context.explicit && typed.from === typed.to) return null;
  return { from: typed.from, options, validFor: pattern };
}

function prefixes(text) {
  const known = declared(text);
  return Object.entries(PREFIXES).filter(([name]) => !(name in known))
    .map(([name, iri]) => ({ label: name, apply: `${name}: <${iri}>`, detail: iri, type: "namespace" }));
}

function iris() {
  const streams = state.streams.map(({ iri }) => ({ label: `<${iri}>`, detail: "stream", type: "type", boost: 2 }));
  const seen = state.predicates.map((iri) => ({ label: `<${iri}>`, detail: "predicate", type: "property" }));
  return [...streams, ...seen];
}

function variables(text) {
  return [...new Set(text.match(/[?$]\w+/g) ?? [])].map((label) => ({ label, type: "variable" }));
}

function gpms(text) {
  const names = [...text.matchAll(/\b(?:GPM|AS)\s+(\w+)/g)].map(([, name]) => name);
  return [...new Set(names)].map((label) => ({ label, detail: "pattern", type: "class", boost: 3 }));
}

function predicates(text) {
  const own = declared(text);
  return state.predicates.map((iri) => {
    const short = shortIri(iri, own);
    const name = Object.entries(own).find(([, beginning]) => iri.startsWith(beginning))?.[0];
    const apply = name === undefined ? `<${iri}>` : `${name}:${iri.slice(own[name].length)}`;
    return { label: name === undefined ? short : apply, apply, detail: "seen", type: "property", boost: 1 };
  });
}

function words(language) {
  const keywords = keywordsOf(language).map((label) => ({ label, type: "keyword" }));
  return [...keywords, ...FUNCTION_NAMES.map((label) => ({ label, apply: `${label}(`, type: "function" }))];
}
