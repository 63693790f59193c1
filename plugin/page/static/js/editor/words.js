// The words of the languages, for highlighting and completion.

import { on, state } from "../state.js";

const SPARQL = `BASE PREFIX SELECT CONSTRUCT ASK DESCRIBE DISTINCT REDUCED WHERE FROM NAMED GRAPH OPTIONAL UNION MINUS FILTER
BIND AS VALUES SERVICE SILENT ORDER BY GROUP HAVING LIMIT OFFSET ASC DESC EXISTS NOT IN UNDEF a`;
const UPDATE = `INSERT DELETE DATA LOAD CLEAR DROP CREATE ADD MOVE COPY WITH USING INTO TO ALL DEFAULT`;
const FUNCTIONS = `STARTTIME ENDTIME DURATION DETECTTIME SUPPRESSED TIMEOF PREV COUNT SUM MIN AVG SAMPLE GROUP_CONCAT STR LANG DATATYPE BOUND IRI
URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER
YEAR MONTH NOW UUID STRUUID MD5 SHA1 SHA256 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISBLANK ISLITERAL ISNUMERIC REGEX
ISTRIPLE SUBJECT PREDICATE OBJECT TRIPLE SUBSTR REPLACE LANGMATCHES`;

const list = (...texts) => texts.join(" ").split(/\s+/);

/** The words that the editor completes in a language; the server lists those of continuous queries. */
export const keywordsOf = (language) =>
  language === "sparql" ? SPARQL_WORDS : state.languages.find((each) => each.name === language)?.words ?? [];

const SPARQL_WORDS = list(SPARQL, UPDATE);
let keywords = new Set(SPARQL_WORDS.map((word) => word.toUpperCase()));
on(["languages"], () => {
  const words = [...SPARQL_WORDS, ...state.languages.flatMap((each) => each.words)];
  keywords = new Set(words.map((word) => word.toUpperCase()));
});

export const FUNCTION_NAMES = list(FUNCTIONS);
/** Whether a word, in capitals, is a keyword of some language. */
export const isKeyword = (word) => keywords.has(word);
export const IS_FUNCTION = new Set(FUNCTION_NAMES);
