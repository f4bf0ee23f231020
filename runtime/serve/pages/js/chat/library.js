// @ts-check
/** The chats, and which of them is shown. */

import { ChatStore } from "./store.js";

/** @typedef {import("./store.js").Chat} Chat */
/** @typedef {import("./store.js").Message} Message */

/** Milliseconds between a change and its being kept. */
const SAVE_AFTER = 400;
const TITLE_LENGTH = 60;

export const UNTITLED = "New chat";

/** @returns {string} */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @returns {Chat} */
export function newChat() {
  const now = Date.now();
  return {
    id: newId(),
    title: UNTITLED,
    isTitled: false,
    created: now,
    updated: now,
    model: null,
    system: "",
    sampling: {},
    messages: [],
    text: "",
  };
}

/** @param {Chat} chat */
export function isEmpty(chat) {
  return !chat.messages.length && !chat.text && !chat.system && !chat.isTitled;
}

/**
 * Sends `list` when the list changes, `current` when another chat is shown, and `problem` if chats cannot be kept.
 */
export class Library extends EventTarget {
  #store = new ChatStore();
  /** Chats that were read. @type {Map<string, Chat>} */
  #chats = new Map();
  /** @type {Map<string, number>} */
  #timers = new Map();
  #channel = new BroadcastChannel("mlxcel-chats");
  /** @type {import("./store.js").Entry[]} */
  entries = [];
  /** @type {Chat} */
  current = newChat();
  /** Says whether a chat is being answered, so that another tab's copy does not replace it. @type {(id: string) => boolean} */
  isBusy = () => false;

  async open() {
    if (!(await this.#store.open())) {
      this.#problem("This browser keeps no data for this page: chats are lost when the tab is closed.");
    }
    this.entries = await this.#store.list();
    this.#channel.onmessage = ({ data }) => this.#changedElsewhere(data.id);
    addEventListener("pagehide", () => this.flush());
    document.addEventListener("visibilitychange", () => document.hidden && this.flush());
    this.#tell("list");
  }

  /** @param {string} name */
  #tell(name) {
    this.dispatchEvent(new Event(name));
  }

  /** @param {string | null} message */
  #problem(message) {
    this.dispatchEvent(new CustomEvent("problem", { detail: message }));
  }

  /** @param {string} id */
  async #changedElsewhere(id) {
    // What is not kept yet is newer.
    const isNewer = (/** @type {string} */ one) => this.#timers.has(one) || this.isBusy(one);
    if (isNewer(id)) return;
    this.#chats.delete(id);
    const kept = await this.#store.list();
    const newer = this.entries.filter((entry) => isNewer(entry.id));
    this.entries = [...newer, ...kept.filter((entry) => !isNewer(entry.id))];
    this.entries.sort((one, other) => other.updated - one.updated);
    this.#tell("list");
    const chat = await this.#store.load(id);
    // Meanwhile another chat may be shown, or this one may have changed here.
    if (this.current.id === id && !isNewer(id)) this.#show(chat ?? newChat());
  }

  /** @param {Chat} chat */
  #show(chat) {
    this.current = chat;
    this.#chats.set(chat.id, chat);
    this.#tell("current");
    this.#tell("list");
  }

  /** Shows an empty chat. Its model and settings are those of the chat before. */
  begin() {
    const { model, sampling } = this.current;
    this.#show({ ...newChat(), model, sampling: { ...sampling } });
  }

  /**
   * Returns a chat.
   * @param {string} id
   */
  async get(id) {
    return this.#chats.get(id) ?? (await this.#store.load(id)) ?? null;
  }

  /**
   * Shows a chat. Returns whether there is one with this id.
   * @param {string} id
   */
  async select(id) {
    if (this.current.id === id) return true;
    const chat = await this.get(id);
    if (!chat) return false;
    // An answer that was being written when the page was closed.
    for (const message of chat.messages) {
      if (message.isOpen && !this.isBusy(id)) Object.assign(message, { isOpen: false, isStopped: true });
    }
    this.#show(chat);
    return true;
  }

  /**
   * Notes that a chat changed, and keeps it soon.
   * @param {Chat} chat
   * @param {{ isNewer?: boolean }} [how] `isNewer` moves it to the top of the list
   */
  changed(chat, { isNewer = true } = {}) {
    if (isNewer) chat.updated = Date.now();
    if (!chat.isTitled) chat.title = titleOf(chat);
    this.#chats.set(chat.id, chat);
    const entry = { id: chat.id, title: chat.title, updated: chat.updated };
    const known = this.entries.find(({ id }) => id === chat.id);
    if (!known && isEmpty(chat)) return;
    const isSame = known?.title === entry.title && this.entries[0]?.id === chat.id;
    this.entries = [entry, ...this.entries.filter(({ id }) => id !== chat.id)];
    this.entries.sort((one, other) => other.updated - one.updated);
    if (!isSame) this.#tell("list");
    if (!this.#timers.has(chat.id)) this.#timers.set(chat.id, setTimeout(() => this.#save(chat.id), SAVE_AFTER));
  }

  /** Keeps what has changed. */
  flush() {
    for (const id of [...this.#timers.keys()]) this.#save(id);
  }

  /** @param {string} id */
  async #save(id) {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    const chat = this.#chats.get(id);
    if (!chat) return;
    try {
      await this.#store.save(chat);
      this.#problem(null);
      this.#channel.postMessage({ id });
    } catch (error) {
      const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
      const why = isFull ? "the browser's storage for this page is full" : String(error);
      this.#problem(`This chat is not kept: ${why}. Export your chats, then delete some.`);
    }
  }

  /**
   * @param {string} id
   * @param {string} title
   */
  async rename(id, title) {
    const chat = await this.get(id);
    const text = title.trim().slice(0, 200);
    if (!chat) return;
    Object.assign(chat, { title: text || chat.title, isTitled: text !== "" });
    this.changed(chat, { isNewer: false });
    this.#tell("list");
    if (chat === this.current) this.#tell("title");
  }

  /**
   * Deletes a chat. Returns it, so that it can be put back.
   * @param {string} id
   */
  async remove(id) {
    const chat = await this.get(id);
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    this.#chats.delete(id);
    this.entries = this.entries.filter((entry) => entry.id !== id);
    await this.#store.remove(id);
    this.#channel.postMessage({ id });
    if (this.current.id === id) this.begin();
    else this.#tell("list");
    return chat;
  }

  /**
   * Takes a chat that was deleted, or that comes from a file.
   * @param {Chat} chat
   */
  put(chat) {
    this.changed(chat, { isNewer: false });
    this.#tell("list");
  }

  /** Returns all chats. */
  async all() {
    const chats = await Promise.all(this.entries.map(({ id }) => this.get(id)));
    return /** @type {Chat[]} */ (chats.filter(Boolean));
  }
}

/** @param {Chat} chat */
function titleOf(chat) {
  const first = chat.messages.find(({ role }) => role === "user")?.content || chat.text;
  const line = first.trim().split("\n", 1)[0].slice(0, 200);
  if (line.length <= TITLE_LENGTH) return line || UNTITLED;
  return `${line.slice(0, TITLE_LENGTH).replace(/\s+\S*$/, "")}…`;
}
