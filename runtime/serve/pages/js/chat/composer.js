// @ts-check
/** The box for the next message. */

import { byId, isComposing } from "../shared/dom.js";
import { fit } from "./editor.js";

export class Composer {
  #area = byId("message");
  #send = byId("send");
  #stop = byId("stop");
  /** Texts that were not sent. @type {Map<string, string>} */
  #drafts = new Map();
  #chat = "";

  /** @param {{ send: (text: string) => boolean, stop: () => void }} actions */
  constructor({ send, stop }) {
    byId("composer").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!send(this.#area.value)) return;
      this.#area.value = "";
      fit(this.#area);
    });
    this.#stop.addEventListener("click", stop);
    this.#area.addEventListener("input", () => fit(this.#area));
    this.#area.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
      event.preventDefault();
      if (!this.#send.hidden) byId("composer").requestSubmit();
    });
  }

  /**
   * Shows the text that was begun in a chat.
   * @param {string} chat
   */
  show(chat) {
    if (chat === this.#chat) return;
    this.#drafts.set(this.#chat, this.#area.value);
    this.#chat = chat;
    this.#area.value = this.#drafts.get(chat) ?? "";
    fit(this.#area);
  }

  /** @param {boolean} isRunning */
  running(isRunning) {
    const hadFocus = [this.#send, this.#stop].includes(document.activeElement);
    this.#send.hidden = isRunning;
    this.#stop.hidden = !isRunning;
    if (hadFocus) (isRunning ? this.#stop : this.#area).focus();
  }

  focus() {
    this.#area.focus();
  }
}
