// @ts-check
/** What can be done with the messages of a chat: send, answer, edit, delete. */

import { ApiFailure } from "../shared/api.js";
import { announce } from "./announce.js";
import { answer } from "./answer.js";
import { newId } from "./library.js";
import { withRetries } from "./retry.js";
import { toast } from "./toasts.js";

/** @typedef {import("./store.js").Chat} Chat */
/** @typedef {import("./store.js").Message} Message */

export const BUSY_ELSEWHERE = "This chat is being answered in another tab.";

export class Conversation {
  /**
   * @param {{
   *   library: import("./library.js").Library, models: import("./models.js").Models,
   *   runs: import("./runs.js").Runs, show: () => void, touch: (message: Message, waiting?: number) => void,
   *   canSend: () => boolean, isFree: (chat: string) => boolean
   * }} parts
   */
  constructor({ library, models, runs, show, touch, canSend, isFree }) {
    this.library = library;
    this.models = models;
    this.runs = runs;
    this.show = show;
    this.touch = touch;
    this.canSend = canSend;
    this.isFree = isFree;
  }

  /**
   * Sends a message of the user. Without a text, what is last is answered. Returns whether it was sent.
   * @param {string} text
   */
  send(text) {
    const chat = this.library.current;
    const isAnswerable = chat.messages.at(-1)?.role === "user";
    if ((!text.trim() && !isAnswerable) || !this.isFree(chat.id) || !this.canSend()) return false;
    if (text.trim()) chat.messages.push({ id: newId(), role: "user", content: text });
    this.#answer(chat);
    return true;
  }

  /**
   * Answers anew: a message of the user, or the one that an answer belongs to.
   * @param {Message} message
   */
  again(message) {
    const chat = this.library.current;
    const at = chat.messages.indexOf(message);
    if (at < 0 || !this.isFree(chat.id) || !this.canSend()) return;
    const kept = message.role === "user" ? at + 1 : at;
    const lost = chat.messages.splice(kept);
    if (lost.length > 1) this.#offerUndo("Later messages were removed.", chat.id, { at: kept, added: 1, lost });
    this.#answer(chat);
  }

  /**
   * Changes a message. That of the user is sent again, and the chat goes on from there. Returns whether it was changed.
   * @param {Message} message
   * @param {string} text
   */
  edit(message, text) {
    const chat = this.library.current;
    const at = chat.messages.indexOf(message);
    if (at < 0 || !this.isFree(chat.id)) return false;
    const changed = { ...message, id: newId(), content: text };
    if (message.role === "assistant") {
      chat.messages[at] = changed;
      this.#changed(chat);
      return true;
    }
    if (!this.canSend()) return false;
    const lost = chat.messages.splice(at, chat.messages.length, changed);
    if (lost.length > 2) this.#offerUndo("Later messages were removed.", chat.id, { at, added: 2, lost });
    this.#answer(chat);
    return true;
  }

  /** @param {Message} message */
  remove(message) {
    const chat = this.library.current;
    const at = chat.messages.indexOf(message);
    if (at < 0 || !this.isFree(chat.id)) return;
    chat.messages.splice(at, 1);
    this.#changed(chat);
    this.#offerUndo("Message deleted.", chat.id, { at, added: 0, lost: [message] });
  }

  /**
   * Offers to put messages back in place of those that were added instead. What was written later stays.
   * @param {string} text
   * @param {string} id the chat
   * @param {{ at: number, added: number, lost: Message[] }} change
   */
  #offerUndo(text, id, change) {
    const undo = async () => {
      if (this.library.isBusyElsewhere(id)) {
        this.library.askElsewhere(id);
        toast(BUSY_ELSEWHERE, undo);
        return;
      }
      const chat = await this.library.get(id);
      if (!chat) return;
      const { at, added, lost } = change;
      const replaced = chat.messages.splice(at, added, ...lost);
      if (replaced.some(({ isOpen }) => isOpen)) this.runs.stop(id);
      this.#changed(chat);
    };
    toast(text, undo);
  }

  /** @param {Chat} chat */
  #changed(chat) {
    this.library.changed(chat, ["content", "model"]);
    if (chat === this.library.current) this.show();
  }

  /** @param {Chat} chat */
  #answer(chat) {
    const model = this.models.chosen?.id;
    if (!model) return;
    chat.model = model;
    const last = chat.messages.at(-1);
    // An answer that failed is replaced.
    if (last?.role === "assistant" && last.error) chat.messages.pop();
    /** @type {Message} */
    const message = { id: newId(), role: "assistant", content: "", model, isOpen: true };
    chat.messages.push(message);
    this.runs.start(chat.id, (signal) => this.#write(chat, message, signal));
    this.#changed(chat);
  }

  /**
   * @param {Chat} chat
   * @param {Message} message
   * @param {AbortSignal} signal
   */
  async #write(chat, message, signal) {
    const model = message.model ?? "";
    const onPart = () => {
      this.touch(message);
      // Where several chats are answered, they keep their places in the list.
      this.library.changed(chat, ["content"], { isNewer: false });
    };
    try {
      announce(`${model} answers.`);
      const ask = () => answer({ chat, model, message, signal, onPart });
      await withRetries(ask, signal, (seconds) => this.touch(message, seconds));
      if (!message.content && !message.calls?.length) announce("The answer is empty.");
    } catch (error) {
      if (signal.aborted) {
        message.isStopped = true;
        announce("Stopped.");
      } else {
        const { status, message: text } = error instanceof ApiFailure ? error : new ApiFailure(0, String(error));
        message.error = { status, message: text };
      }
    }
    message.isOpen = false;
    this.touch(message);
    this.library.changed(chat, ["content"]);
  }
}
