// @ts-check
/** The list of chats. */

import { byId, el, iconButton } from "../shared/dom.js";
import { closePanel } from "./panels.js";
import { toast } from "./toasts.js";
import { readFile, saveFile } from "./transfer.js";

export class Sidebar {
  #list = byId("chat-list");

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

  draw() {
    const { entries, current } = this.library;
    const focused = document.activeElement?.closest("[data-chat]")?.getAttribute("data-chat");
    if (this.#list.querySelector("input")) return;
    this.#list.replaceChildren(...entries.map((entry) => this.#item(entry, entry.id === current.id)));
    if (!entries.length) this.#list.append(el("li", { class: "no-chats" }, "No chats yet. They are kept in this browser only."));
    if (focused) this.#list.querySelector(`[data-chat="${focused}"] a`)?.focus();
  }

  /**
   * @param {import("./store.js").Entry} entry
   * @param {boolean} isCurrent
   */
  #item({ id, title }, isCurrent) {
    const link = el("a", { href: `#/${id}`, "aria-current": isCurrent && "page", title }, title);
    const running = this.runs.isRunning(id) && el("span", { class: "running", role: "img", "aria-label": "being answered" });
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
      if (isKept && text.trim() !== title) await this.library.rename(id, text);
      this.draw();
      this.#list.querySelector(`[data-chat="${id}"] a`)?.focus();
    };
    input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.isComposing) return;
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
    this.runs.stop(id);
    const wasCurrent = this.library.current.id === id;
    const chat = await this.library.remove(id);
    byId("new-chat").focus();
    if (!chat) return;
    toast("Chat deleted.", () => {
      this.library.put(chat);
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
      for (const chat of chats) this.library.put(chat);
      toast(`${chats.length === 1 ? "One chat was" : `${chats.length} chats were`} imported.`);
    } catch (error) {
      toast(`Nothing was imported: ${/** @type {Error} */ (error).message}.`);
    }
  }
}
