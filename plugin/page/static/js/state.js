// The page's state and its listeners. Panels read `state` and listen; only this file changes it.

export const state = {
  server: { live: null, read_only: false, upstream: false }, // as GET /ui/server.json has it
  kb: null, // with another endpoint behind: how its answers are, as GET /kb has them
  live: null, // whether the server has streams and queries; null: not known yet
  languages: [{ name: "spaseq", title: "SPAseq", media_type: "application/spaseq-query", words: [] }], // of continuous queries
  streams: [], // as GET /streams has them, with rate and history
  queries: [], // as GET /queries has them, with rate
  sinks: [], // of the selected one, as GET /queries/{query}/sinks has them
  sinkKinds: [], // JSON schemas of the kinds of sinks
  selected: null, // name of the query that is looked at
  explanation: null, // of the selected one
  matches: [], // of the selected one, the newest last; the array is added to in place
  page: null, // older matches in the table, an array; null: the newest
  moment: null, // a past instant of the automaton, { at (microseconds), waiting, matches }; null: now
  view: null, // the stretch of time that is looked at, { from, to } in milliseconds; null: all
  provenance: null, // of the chosen match: what it derives from
  match: null, // id of the one that is looked at
  predicates: [], // IRIs seen in the store and streams
};

const listeners = new Map();

/** Call `listener` whenever one of the names changes. */
export function on(names, listener) {
  for (const name of names) listeners.set(name, [...(listeners.get(name) ?? []), listener]);
}

/** Change values and call their listeners. */
export function set(values) {
  Object.assign(state, values);
  const heard = new Set(Object.keys(values).flatMap((name) => listeners.get(name) ?? []));
  for (const listener of heard) listener(state);
}

export const selectedQuery = () => state.queries.find((query) => query.name === state.selected) ?? null;
