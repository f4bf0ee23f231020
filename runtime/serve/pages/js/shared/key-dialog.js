// @ts-check
/** Asks for the API key. */

import { el } from "./dom.js";
import { currentKey, keepKey } from "./key.js";

/** The dialog that is open, so that several refusals ask once. @type {Promise<boolean> | null} */
let open = null;

/**
 * Asks for the key. Returns whether one was given.
 * @param {string} reason
 */
export function askKey(reason) {
  open ??= show(reason).finally(() => {
    open = null;
  });
  return open;
}

/**
 * @param {string} reason
 * @returns {Promise<boolean>}
 */
function show(reason) {
  const error = el("p", { class: "field-error", id: "key-error", role: "alert" });
  const input = el("input", {
    id: "key-input",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "key-reason key-error",
  });
  input.value = currentKey();
  const remember = el("input", { type: "checkbox", id: "key-remember" });
  const cancel = el("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Cancel");
  const form = el(
    "form",
    { method: "dialog" },
    el("h2", {}, "API key"),
    el("p", { id: "key-reason", class: "muted" }, reason),
    el("div", { class: "field" }, el("label", { for: "key-input" }, "Key"), input, error),
    el("label", { class: "check" }, remember, "Remember it in this browser"),
    el("p", { class: "muted" }, "Otherwise it is kept until this tab is closed. It is sent to this server only."),
    el("div", { class: "dialog-row" }, cancel, el("button", { class: "button primary" }, "Use this key")),
  );
  const dialog = el("dialog", { "aria-label": "API key" }, form);
  return new Promise((resolve) => {
    let isGiven = false;
    form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const key = input.value.trim();
      // Headers take nothing else.
      if (!/^[\x21-\x7e]*$/.test(key)) {
        error.textContent = "A key has no spaces and only ASCII characters.";
        input.setAttribute("aria-invalid", "true");
        return;
      }
      keepKey(key, remember.checked);
      isGiven = key !== "";
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isGiven);
    });
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}
