// @ts-check
/** A message as it is shown, with its actions. */

import { el, icon, iconButton } from "../shared/dom.js";
import { count, duration, short } from "../shared/format.js";
import { MarkdownView } from "../markdown/render.js";
import { editor } from "./editor.js";

/** @typedef {import("./store.js").Message} Message */
/**
 * @typedef {{
 *   again: (message: Message) => void, edit: (message: Message, text: string) => boolean,
 *   remove: (message: Message) => void, contextOf: (message: Message) => number
 * }} Actions
 */

/** @param {import("./store.js").Stats} stats */
export function statsOf({ rate, firstToken, generated, prompt, cached }) {
  const texts = [
    rate !== null && `${short(rate)} tokens/s`,
    firstToken !== null && `first token ${duration(firstToken)}`,
    generated !== null && `${count(generated)} ${generated === 1 ? "token" : "tokens"}`,
    prompt !== null && `prompt ${count(prompt)}${cached ? `, ${count(cached)} cached` : ""}`,
  ];
  return el("span", { class: "stats" }, ...texts.map((text) => text && el("span", {}, text)));
}

/**
 * Copies a text, and says on the button that it did.
 * @param {string} text
 * @param {HTMLButtonElement} button
 */
async function copy(text, button) {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS there may be no clipboard.
    isCopied = false;
  }
  button.replaceChildren(icon(isCopied ? "check" : "close"));
  button.setAttribute("aria-label", isCopied ? "Copied" : "Copying is not allowed here");
  setTimeout(() => {
    button.replaceChildren(icon("copy"));
    button.setAttribute("aria-label", "Copy");
  }, 1600);
}

export class MessageView {
  #body;
  #notes = el("div");
  #foot = el("div", { class: "foot" });
  /** @type {MarkdownView | null} */
  #markdown = null;
  /** @type {HTMLElement | null} */
  #reasoning = null;
  /** Seconds until the server is asked again. */
  waiting = 0;

  /**
   * @param {Message} message
   * @param {Actions} actions
   * @param {(text: string) => void} [speak] is called with the text of each block that is complete
   */
  constructor(message, actions, speak) {
    this.message = message;
    this.actions = actions;
    const isUser = message.role === "user";
    const name = isUser ? "You" : (message.model ?? "Model");
    this.#body = el("div", { class: isUser ? "body" : "body markdown" });
    this.calls = el("div");
    this.element = el(
      "li",
      { class: `message ${message.role}`, "data-id": message.id },
      // Screen readers go from message to message by headings.
      el("h2", { class: "role" }, name),
      this.#body,
      this.calls,
      this.#notes,
      this.#foot,
    );
    if (!isUser) this.#markdown = new MarkdownView(this.#body, speak);
    this.update();
  }

  /** Draws what has changed. */
  update() {
    const { message } = this;
    this.element.setAttribute("aria-busy", String(!!message.isOpen));
    if (this.#markdown) {
      this.#drawReasoning();
      this.#markdown.update(message.content);
      if (!message.isOpen) this.#markdown.finish();
      this.#drawCalls();
    } else if (this.#body.textContent !== message.content) {
      this.#body.textContent = message.content;
    }
    this.#drawNotes();
    this.#drawFoot();
  }

  #drawReasoning() {
    const { reasoning, content, isOpen } = this.message;
    if (!reasoning) return;
    if (!this.#reasoning) {
      const text = el("div");
      this.#reasoning = el("details", { class: "reasoning" }, el("summary", {}, "Reasoning"), text);
      this.#body.before(this.#reasoning);
    }
    const [summary, text] = /** @type {any} */ (this.#reasoning).children;
    summary.textContent = isOpen && !content ? "Reasoning …" : "Reasoning";
    if (text.textContent !== reasoning) text.textContent = reasoning;
  }

  #drawCalls() {
    const { calls = [] } = this.message;
    calls.forEach((call, index) => {
      const known = this.calls.children[index];
      let text = call.arguments;
      try {
        text = JSON.stringify(JSON.parse(text), null, 2);
      } catch {
        // It is still being written.
      }
      const summary = el("summary", {}, "Calls ", el("code", {}, call.name));
      const drawn = el("details", { class: "call", open: true }, summary, el("pre", {}, text));
      if (!known) this.calls.append(drawn);
      else if (known.textContent !== drawn.textContent) known.replaceWith(drawn);
    });
  }

  #drawNotes() {
    const { message } = this;
    /** @type {(Node | false | "")[]} */
    const notes = [];
    const isEmpty = !message.content && !message.reasoning && !message.calls?.length;
    if (message.isOpen && this.waiting) {
      notes.push(el("div", { class: "notice" }, `The server is busy. Next try in ${this.waiting} s.`));
    } else if (message.isOpen && isEmpty) {
      notes.push(el("span", { class: "thinking", role: "img", "aria-label": "Waiting for the first word" }, el("i"), el("i"), el("i")));
    }
    if (message.error) {
      const again = el("button", { type: "button", class: "text-button", onclick: () => this.actions.again(message) }, "Try again");
      const text = message.error.message;
      notes.push(el("div", { class: "notice error", role: "alert" }, `${text.charAt(0).toUpperCase()}${text.slice(1)}.`, again));
    }
    if (message.finish === "length") notes.push(el("div", { class: "notice" }, this.#lengthNote()));
    if (message.isStopped) notes.push(el("div", { class: "notice" }, "Stopped."));
    const drawn = el("div", {}, .../** @type {Node[]} */ (notes));
    // An alert is spoken once.
    if (drawn.textContent !== this.#notes.textContent || drawn.childElementCount !== this.#notes.childElementCount) {
      this.#notes.replaceChildren(...drawn.childNodes);
    }
  }

  #lengthNote() {
    const { stats } = this.message;
    const context = this.actions.contextOf(this.message);
    const isFull = context > 0 && (stats?.prompt ?? 0) + (stats?.generated ?? 0) >= context;
    return isFull
      ? `Cut off: the context of ${count(context)} tokens is full (finish reason: length).`
      : "Cut off at the largest number of tokens (finish reason: length).";
  }

  #drawFoot() {
    const { message, actions } = this;
    const isShown = !message.isOpen && this.#foot.childElementCount > 0;
    if (message.isOpen || isShown) {
      if (message.isOpen) this.#foot.replaceChildren();
      return;
    }
    const isUser = message.role === "user";
    /** @type {HTMLButtonElement} */
    const copier = iconButton("copy", "Copy", () => copy(message.content, copier));
    const buttons = [
      message.content && copier,
      iconButton("edit", isUser ? "Edit and send again" : "Edit", () => this.edit()),
      iconButton("again", isUser ? "Answer this again" : "Regenerate", () => actions.again(message)),
      iconButton("trash", "Delete", () => actions.remove(message)),
    ];
    const stats = message.stats?.firstToken != null && statsOf(message.stats);
    const row = el("div", { class: "actions" }, ...buttons);
    this.#foot.replaceChildren(...[stats, row].filter((node) => !!node));
  }

  /** Lets the text be changed in its place. */
  edit() {
    const { message } = this;
    const isUser = message.role === "user";
    const close = () => {
      form.remove();
      this.#body.hidden = false;
      this.#foot.hidden = false;
      this.element.classList.remove("is-editing");
      this.#foot.querySelector("[aria-label^=Edit]")?.focus();
    };
    const form = editor(message.content, isUser, close, (text) => {
      if (this.actions.edit(message, text)) close();
    });
    this.element.classList.add("is-editing");
    this.#body.hidden = true;
    this.#foot.hidden = true;
    this.#body.before(form);
    const area = /** @type {HTMLTextAreaElement} */ (form.querySelector("textarea"));
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }
}
