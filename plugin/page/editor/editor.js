// What the page's editor takes from CodeMirror 6, in one file (see ../README.md).
export { EditorState, Compartment } from "@codemirror/state";
export {
  EditorView, keymap, drawSelection, highlightActiveLine, lineNumbers, placeholder, tooltips,
} from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export {
  HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting,
} from "@codemirror/language";
export {
  acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap,
} from "@codemirror/autocomplete";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { tags } from "@lezer/highlight";
