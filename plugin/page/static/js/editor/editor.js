// The editor: CodeMirror with our highlighting and completion. It is in a shadow root, where CodeMirror's styles are
// style sheets and no <style> elements, so that the page's security policy needs no exception.

import {
  EditorState, EditorView, acceptCompletion, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap,
  completionKeymap, defaultKeymap, drawSelection, highlightActiveLine, history, historyKeymap, keymap, lineNumbers,
  lintKeymap, setDiagnostics, syntaxHighlighting,
} from "../../vendor/codemirror.js";
import { completions } from "./complete.js";
import { colours, language as syntax } from "./language.js";
import { looks } from "./looks.js";

/** An editor in `parent`. `language`: that of the text; `changed(text)`: called after each edit; `run`: Ctrl+Enter. */
export function makeEditor(parent, { label, language, changed, run }) {
  const root = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      extensions: [
        lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), closeBrackets(),
        EditorView.lineWrapping, syntax, syntaxHighlighting(colours), looks,
        autocompletion({ override: [completions(language)], icons: false }),
        keymap.of([
          { key: "Mod-Enter", run: () => (run(), true) },
          { key: "Tab", run: acceptCompletion }, // only while something is offered: else Tab leaves the editor
          ...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap,
        ]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  view.scrollDOM.tabIndex = 0; // it can be scrolled by keys where it is too small for its text
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
    underline: (findings) => view.dispatch(setDiagnostics(view.state, findings.map((each) => diagnostic(view.state.doc, each)))),
    goTo: (line, column) => {
      view.dispatch({ selection: { anchor: place(view.state.doc, line, column) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
  };
}

function diagnostic(doc, { severity, message, hint, line, column, end_line, end_column }) {
  const from = place(doc, line, column);
  const to = end_line ? place(doc, end_line, end_column) : from;
  const text = hint ? `${message}\n${hint}` : message;
  const [start, end] = to > from ? [from, to] : around(doc, from);
  return { from: start, to: end, severity: severity === "error" ? "error" : "warning", message: text };
}

/** Lines and columns are counted from 1, columns by code points; CodeMirror counts UTF-16 units. */
function place(doc, line, column) {
  const found = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const units = [...found.text].slice(0, column - 1).join("").length;
  return Math.min(found.from + units, found.to);
}

/** Something that can be seen: the rest of the word, or the sign before. */
function around(doc, at) {
  const rest = /^[\w:?]+|^./.exec(doc.sliceString(at, doc.lineAt(at).to))?.[0] ?? "";
  return rest ? [at, at + rest.length] : [Math.max(at - 1, 0), at];
}
