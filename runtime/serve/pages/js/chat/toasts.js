// @ts-check
/** Short notes at the bottom of the page, some of which undo what was done. */

import { byId, el } from "../shared/dom.js";

const SHOWN = 9000;

/**
 * Shows a note, with a button that undoes what it says.
 * @param {string} text
 * @param {() => void} [undo]
 */
export function toast(text, undo) {
  const host = byId("toasts");
  const close = () => note.remove();
  let timer = setTimeout(close, SHOWN);
  const button =
    undo &&
    el("button", { type: "button", class: "text-button", onclick: () => (close(), undo()) }, "Undo");
  const note = el("div", { class: "toast" }, el("span", {}, text), button);
  // Whoever is about to press the button has time to do so.
  for (const event of ["mouseenter", "focusin"]) note.addEventListener(event, () => clearTimeout(timer));
  for (const event of ["mouseleave", "focusout"]) {
    note.addEventListener(event, () => {
      clearTimeout(timer);
      timer = setTimeout(close, SHOWN);
    });
  }
  host.replaceChildren(note);
}

/**
 * Shows a notice above the messages until it is replaced. `null` removes it.
 * @param {string} id
 * @param {string | null} text
 * @param {{ label: string, onclick: () => void }} [action]
 */
export function notice(id, text, action) {
  const host = byId("notices");
  const before = host.querySelector(`[data-notice="${id}"]`);
  if (before?.firstChild?.textContent === text) return;
  before?.remove();
  if (text === null) return;
  const button = action && el("button", { type: "button", class: "text-button", onclick: action.onclick }, action.label);
  host.append(el("div", { class: "notice", role: "alert", "data-notice": id }, el("span", {}, text), button));
}
