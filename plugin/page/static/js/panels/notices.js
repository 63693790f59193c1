// One line about what happened last, read out by screen readers.

import { byId, fill } from "../dom.js";

/** Shows `text`; `more`: elements behind it, such as a way to go on. */
export function tell(text, kind = "", ...more) {
  const notice = byId("notice");
  fill(notice, text, ...more);
  notice.dataset.kind = kind;
}
