// @ts-check
/** Text boxes that grow with their text. */

import { el, isComposing } from "../shared/dom.js";

/**
 * Makes a text box as high as its text.
 * @param {HTMLTextAreaElement} area
 */
export function fit(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + area.offsetHeight - area.clientHeight}px`;
}

/**
 * Makes the form that changes a message.
 * @param {string} text
 * @param {boolean} isSent whether it is sent again, so that Enter sends it
 * @param {() => void} onCancel
 * @param {(text: string) => void} onDone
 * @returns {HTMLFormElement}
 */
export function editor(text, isSent, onCancel, onDone) {
  const area = el("textarea", { "aria-label": "Text of the message" });
  area.value = text;
  const form = el(
    "form",
    { class: "edit" },
    area,
    el(
      "div",
      { class: "edit-row" },
      el("button", { type: "button", class: "button", onclick: onCancel }, "Cancel"),
      el("button", { class: "button primary" }, isSent ? "Send" : "Save"),
    ),
  );
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    if (area.value.trim()) onDone(area.value);
  });
  area.addEventListener("input", () => fit(area));
  area.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (isComposing(event)) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (isSent && !event.shiftKey))) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  requestAnimationFrame(() => fit(area));
  return form;
}
