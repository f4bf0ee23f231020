// @ts-check
/** A text that a model without a chat template continues. */

import { ApiFailure } from "../shared/api.js";
import { byId, el } from "../shared/dom.js";
import { announce } from "./announce.js";
import { continuation } from "./answer.js";
import { statsOf } from "./message-view.js";
import { withRetries } from "./retry.js";

/** @typedef {import("./store.js").Chat} Chat */

export class TextMode {
  #area = byId("text");
  #status = byId("text-status");
  #undo = byId("undo-text");
  /** The texts before the last continuation. @type {Map<string, string>} */
  #before = new Map();
  /** @type {Chat | null} */
  #chat = null;

  /**
   * @param {{
   *   library: import("./library.js").Library, models: import("./models.js").Models, runs: import("./runs.js").Runs,
   *   isFree: (chat: string) => boolean
   * }} parts
   */
  constructor({ library, models, runs, isFree }) {
    this.library = library;
    this.models = models;
    this.runs = runs;
    this.isFree = isFree;
    this.#area.addEventListener("input", () => {
      if (!this.#chat) return;
      this.#chat.text = this.#area.value;
      this.library.changed(this.#chat, ["content"]);
    });
    this.#area.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      byId("composer").requestSubmit();
    });
    this.#undo.addEventListener("click", () => this.#takeBack());
  }

  /** @param {Chat} chat */
  show(chat) {
    if (this.#chat !== chat) this.#status.replaceChildren();
    this.#chat = chat;
    if (this.#area.value !== chat.text) this.#area.value = chat.text;
    this.running();
  }

  /** Leaves the page to chats. */
  hide() {
    this.#chat = null;
    this.running();
  }

  /** Shows whether the text is being continued. */
  running() {
    const isRunning = !!this.#chat && this.runs.isRunning(this.#chat.id);
    this.#area.readOnly = isRunning || (!!this.#chat && this.library.isBusyElsewhere(this.#chat.id));
    this.#area.setAttribute("aria-busy", String(isRunning));
    this.#undo.hidden = isRunning || !this.#chat || !this.#before.has(this.#chat.id);
  }

  #takeBack() {
    const chat = this.#chat;
    if (!chat || !this.isFree(chat.id)) return;
    chat.text = this.#before.get(chat.id) ?? chat.text;
    this.#before.delete(chat.id);
    this.#status.replaceChildren();
    this.library.changed(chat, ["content"]);
    this.show(chat);
    this.#area.focus();
    announce("The continuation was taken back.");
  }

  /** Continues the text of the chat that is shown. */
  start() {
    const [chat, model] = [this.library.current, this.models.chosen];
    if (!model || !this.isFree(chat.id)) return;
    chat.model = model.id;
    this.#before.set(chat.id, chat.text);
    this.library.changed(chat, ["content", "model"]);
    this.runs.start(chat.id, (signal) => this.#write(chat, model, signal));
  }

  /**
   * @param {Chat} chat
   * @param {import("./models.js").Model} model
   * @param {AbortSignal} signal
   */
  async #write(chat, model, signal) {
    const start = chat.text.length;
    let isScheduled = false;
    const draw = () => {
      isScheduled = false;
      if (this.#chat === chat) this.#append(chat);
    };
    const onText = (/** @type {string} */ text) => {
      chat.text += text;
      this.library.changed(chat, ["content"], { isNewer: false });
      if (!isScheduled) requestAnimationFrame(draw);
      isScheduled = true;
    };
    this.#say(chat, []);
    try {
      const ask = () => continuation({ chat, model, signal, onText });
      const { finish, stats } = await withRetries(ask, signal, (seconds) => {
        this.#say(chat, seconds ? [`The server is busy. Next try in ${seconds} s.`] : []);
      });
      draw();
      const end = finish === "stop" ? "The text has ended." : "Continue for more (finish reason: length).";
      this.#say(chat, [statsOf(stats), end]);
      announce(`${chat.text.slice(start)} ${end}`);
    } catch (error) {
      draw();
      if (signal.aborted) this.#say(chat, ["Stopped."]);
      else this.#fail(chat, error instanceof ApiFailure ? error.message : String(error));
    }
  }

  /**
   * Shows a text that has grown, at its end if the reader is there.
   * @param {Chat} chat
   */
  #append(chat) {
    const area = this.#area;
    const isAtEnd = area.scrollHeight - area.scrollTop - area.clientHeight < 64;
    area.value = chat.text;
    if (isAtEnd) area.scrollTop = area.scrollHeight;
  }

  /**
   * @param {Chat} chat
   * @param {(Node | string)[]} lines
   */
  #say(chat, lines) {
    if (this.#chat === chat) this.#status.replaceChildren(...lines.map((line) => el("div", {}, line)));
  }

  /**
   * @param {Chat} chat
   * @param {string} text
   */
  #fail(chat, text) {
    const again = el("button", { type: "button", class: "text-button", onclick: () => this.start() }, "Try again");
    const sentence = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
    this.#say(chat, [el("div", { class: "notice error", role: "alert" }, sentence, again)]);
  }
}
