// One line about what happened last, read out by screen readers.

import { byId } from "../dom.js";

export function tell(text, kind = "") {
  const notice = byId("notice");
  notice.textContent = text;
  notice.dataset.kind = kind;
}
