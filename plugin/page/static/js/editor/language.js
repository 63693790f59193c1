// Highlighting: one tokenizer for SPARQL, SPAseq and the languages beside them. Errors are the server's business.

import { HighlightStyle, StreamLanguage, tags } from "../../vendor/codemirror.js";
import { IS_FUNCTION, isKeyword } from "./words.js";

const LONG_STRING = /^("""|''')/;

function token(stream, state) {
  if (state.quote) return inString(stream, state);
  if (stream.eatSpace()) return null;
  if (stream.match(/^#.*/)) return "comment";
  if (stream.match(/^<[^<>"{}|^`\\\s]*>/)) return "link";
  const long = stream.match(LONG_STRING);
  if (long) {
    state.quote = long[1];
    return inString(stream, state);
  }
  if (stream.match(/^"(?:[^"\\\n]|\\.)*"/) || stream.match(/^'(?:[^'\\\n]|\\.)*'/)) return "string";
  if (stream.match(/^[?$][\w]+/)) return "variableName";
  if (stream.match(/^@[A-Za-z]+(-[A-Za-z0-9]+)*/)) return "meta";
  if (stream.match(/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/)) return "number";
  if (stream.match(/^[\p{L}_][\p{L}\p{N}_.-]*?:[\p{L}\p{N}_%\\][\p{L}\p{N}_%\\.:-]*/u)) return "propertyName";
  if (stream.match(/^:[\p{L}_][\p{L}\p{N}_-]*/u)) return "propertyName";
  if (stream.match(/^[\p{L}_][\p{L}\p{N}_.-]*:/u)) return "propertyName";
  const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u);
  if (word) return ofWord(word[0], state);
  if (stream.match(/^(&&|\|\||[<>=!]=|\^\^|[=<>!+*?|&;:^/,-])/)) return "operator";
  stream.next();
  return null;
}

function ofWord(word, state) {
  const upper = word.toUpperCase();
  const before = state.word;
  state.word = upper;
  if (before === "GPM" || before === "STREAM") return "className";
  if (IS_FUNCTION.has(upper)) return "function";
  if (isKeyword(upper) && (word === upper || word === word.toLowerCase()) && word.length > 1) return "keyword";
  if (word === "a" || word === "true" || word === "false") return "keyword";
  return "className"; // names of GPMs, of event types, aliases
}

function inString(stream, state) {
  const end = stream.string.indexOf(state.quote, stream.pos);
  if (end < 0) stream.skipToEnd();
  else {
    stream.pos = end + 3;
    state.quote = null;
  }
  return "string";
}

export const language = StreamLanguage.define({
  name: "sequence queries",
  startState: () => ({ quote: null, word: null }),
  token,
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
  tokenTable: { function: tags.function(tags.variableName) },
});

export const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.className, color: "var(--code-name)", fontWeight: "600" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.propertyName, color: "var(--code-property)" },
  { tag: tags.link, color: "var(--code-iri)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--muted)" },
]);
