// @ts-check
/** The list of chats. */

import { byId, el, iconButton, isComposing } from "../shared/dom.js";
import { closePanel } from "./panels.js";
import { toast } from "./toasts.js";
import { readFile, saveFile } from "./transfer.js";

export class Sidebar {
  #list = byId("chat-list");
  /** The rows that are drawn, as a text. @type {string | null} */
  #drawn = null;

  /**
   * @param {{ library: import("./library.js").Library, runs: import("./runs.js").Runs, begin: () => void }} parts
   */
  constructor({ library, runs, begin }) {
    this.library = library;
    this.runs = runs;
    byId("new-chat").addEventListener("click", () => {
      closePanel("sidebar");
      begin();
    });
    byId("export").addEventListener("click", async () => saveFile(await library.all(), "chats"));
    byId("import").addEventListener("click", () => byId("import-file").click());
    byId("import-file").addEventListener("change", () => this.#import());
    this.#list.addEventListener("click", (/** @type {Event} */ event) => {
      if (/** @type {Element} */ (event.target).closest("a")) closePanel("sidebar");
    });
  }

  /** Draws the list, unless it is drawn already: what has the focus, or is being clicked, stays. */
  draw() {
    const rows = this.#rows();
    const drawn = JSON.stringify(rows);
    if (drawn === this.#drawn || this.#list.querySelector("input")) return;
    this.#drawn = drawn;
    const focused = document.activeElement?.closest("[data-chat]")?.getAttribute("data-chat");
    this.#list.replaceChildren(...rows.map((row) => this.#item(row)));
    if (!rows.length) this.#list.append(el("li", { class: "no-chats" }, "No chats yet. They are kept in this browser only."));
    if (focused) this.#list.querySelector(`[data-chat="${focused}"] a`)?.focus();
  }

  /** Returns what is shown of each chat. */
  #rows() {
    const { entries, current } = this.library;
    return entries.map(({ id, title }) => {
      const isRunning = this.runs.isRunning(id) || this.library.isBusyElsewhere(id);
      return { id, title, isCurrent: id === current.id, isRunning };
    });
  }

  /** @param {{ id: string, title: string, isCurrent: boolean, isRunning: boolean }} row */
  #item({ id, title, isCurrent, isRunning }) {
    const link = el("a", { href: `#/${id}`, "aria-current": isCurrent && "page", title }, title);
    const running = isRunning && el("span", { class: "running", role: "img", "aria-label": "being answered" });
    const actions = el(
      "div",
      { class: "chat-actions" },
      iconButton("edit", `Rename ${title}`, () => this.#rename(id, title, item)),
      iconButton("save", `Export ${title}`, () => this.#export(id)),
      iconButton("trash", `Delete ${title}`, () => this.#remove(id)),
    );
    const item = el("li", { class: `chat-item${isCurrent ? " current" : ""}`, "data-chat": id }, link, running, actions);
    return item;
  }

  /**
   * @param {string} id
   * @param {string} title
   * @param {HTMLElement} item
   */
  #rename(id, title, item) {
    const input = el("input", { "aria-label": "Name of the chat", maxlength: 200 });
    input.value = title;
    let isOver = false;
    const end = async (/** @type {boolean} */ isKept) => {
      if (isOver) return;
      isOver = true;
      const text = input.value;
      item.replaceChildren();
      this.#drawn = null;
      if (isKept && text.trim() !== title) await this.library.rename(id, text);
      this.draw();
      this.#list.querySelector(`[data-chat="${id}"] a`)?.focus();
    };
    input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (isComposing(event)) return;
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") {
        event.stopPropagation();
        end(false);
      }
    });
    input.addEventListener("blur", () => end(true));
    item.replaceChildren(input);
    input.select();
  }

  /** @param {string} id */
  async #export(id) {
    const chat = await this.library.get(id);
    if (chat) saveFile([chat], chat.title);
  }

  /** @param {string} id */
  async #remove(id) {
    const wasCurrent = this.library.current.id === id;
    const chat = await this.library.remove(id);
    byId("new-chat").focus();
    if (!chat) return;
    toast("Chat deleted.", () => {
      this.library.put([chat]);
      if (wasCurrent) location.hash = `#/${id}`;
    });
  }

  async #import() {
    const input = byId("import-file");
    const file = input.files[0];
    input.value = "";
    if (!file) return;
    try {
      const chats = readFile(await file.text());
      this.library.put(chats);
      toast(`${chats.length === 1 ? "One chat was" : `${chats.length} chats were`} imported.`);
    } catch (error) {
      toast(`Nothing was imported: ${/** @type {Error} */ (error).message}.`);
    }
  }
}
