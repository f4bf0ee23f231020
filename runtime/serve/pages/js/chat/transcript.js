// @ts-check
/** The messages of the chat that is shown. */

import { byId } from "../shared/dom.js";
import { announce } from "./announce.js";
import { MessageView } from "./message-view.js";

/** Pixels from the end at which the reader counts as being there. */
const NEAR = 64;

export class Transcript {
  #host = byId("transcript");
  #scroller = byId("scroller");
  #toEnd = byId("to-end");
  /** @type {Map<string, MessageView>} */
  #views = new Map();
  /** Messages to be drawn in the next frame. @type {Set<MessageView>} */
  #dirty = new Set();
  /** The number of blocks of an answer that were spoken. @type {Map<string, number>} */
  #spoken = new Map();
  #isAtEnd = true;
  /** @type {string | null} */
  #chat = null;

  /** @param {import("./message-view.js").Actions} actions */
  constructor(actions) {
    this.actions = actions;
    this.#scroller.addEventListener("scroll", () => this.#look(), { passive: true });
    this.#toEnd.addEventListener("click", () => {
      this.scrollToEnd();
      byId("message").focus();
    });
    new ResizeObserver(() => this.#follow()).observe(this.#host);
  }

  #look() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    this.#isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    this.#toEnd.hidden = this.#isAtEnd || this.#views.size === 0;
  }

  /** Stays at the end, if the reader is there. */
  #follow() {
    if (this.#isAtEnd && this.#views.size) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    else this.#look();
  }

  scrollToEnd() {
    this.#isAtEnd = true;
    this.#follow();
    this.#look();
  }

  /**
   * Shows the messages of a chat. Views of messages that are still there stay.
   * @param {import("./store.js").Chat} chat
   */
  show(chat) {
    const isOther = this.#chat !== chat.id;
    this.#chat = chat.id;
    const wanted = new Set(chat.messages.map(({ id }) => id));
    for (const [id, view] of this.#views) {
      if (!isOther && wanted.has(id) && chat.messages.includes(view.message)) continue;
      view.element.remove();
      this.#views.delete(id);
    }
    chat.messages.forEach((message, index) => {
      const known = this.#views.get(message.id);
      const view = known ?? new MessageView(message, this.actions, message.isOpen ? this.#speaker(message.id) : undefined);
      this.#views.set(message.id, view);
      // Another tab may have written more of it.
      known?.update();
      if (this.#host.children[index] !== view.element) this.#host.insertBefore(view.element, this.#host.children[index] ?? null);
    });
    if (isOther) this.scrollToEnd();
    this.#look();
  }

  /**
   * Returns what speaks the blocks of an answer, from the first one on. Each is spoken once, however often the answer is shown.
   * @param {string} id
   * @returns {(text: string) => void}
   */
  #speaker(id) {
    let block = 0;
    return (text) => {
      block += 1;
      if (block <= (this.#spoken.get(id) ?? 0)) return;
      this.#spoken.set(id, block);
      announce(text);
    };
  }

  /**
   * Draws a message in the next frame, if its chat is shown.
   * @param {import("./store.js").Message} message
   * @param {number} [waiting] seconds until the server is asked again
   */
  touch(message, waiting) {
    const view = this.#views.get(message.id);
    if (!view) return;
    if (waiting !== undefined) view.waiting = waiting;
    if (!this.#dirty.size) {
      const draw = () => {
        for (const one of this.#dirty) one.update();
        this.#dirty.clear();
        this.#follow();
      };
      // A tab that is not seen has no frames.
      if (document.hidden) setTimeout(draw, 200);
      else requestAnimationFrame(draw);
    }
    this.#dirty.add(view);
  }
}
