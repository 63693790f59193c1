// The token, kept for this tab only, and the dialog where the user types it.

import { byId } from "./dom.js";

const KEY = "oxiseq-token";
let asking = null;
let declined = false;

export const token = () => sessionStorage.getItem(KEY);

/** Whether there is another token than `used` now; requests that are refused together open one dialog. */
export function askForToken(reason, used) {
  if (token() !== used) return Promise.resolve(true);
  if (declined) return Promise.resolve(false);
  asking ??= shown(reason).finally(() => { asking = null; });
  return asking;
}

/** Ask, whoever wants to. */
export function changeToken() {
  declined = false;
  return askForToken("It is kept in this tab only.", token());
}

function shown(reason) {
  const dialog = byId("token");
  const input = byId("token-text");
  byId("token-reason").textContent = reason;
  input.value = "";
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue === "use" && input.value.trim();
      if (given) sessionStorage.setItem(KEY, given);
      declined = !given;
      resolve(Boolean(given));
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
}
