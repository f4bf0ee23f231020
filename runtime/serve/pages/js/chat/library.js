// @ts-check
/** The chats, and which of them is shown. */

import { ChatStore } from "./store.js";

/** @typedef {import("./store.js").Chat} Chat */
/** @typedef {import("./store.js").Message} Message */

/** Milliseconds between a change and its being kept. */
const SAVE_AFTER = 400;
/** Milliseconds within which another tab says that it still answers. */
const ANSWERS_WITHIN = 1000;
const TITLE_LENGTH = 60;

/** The fields that change together. Of changes that two tabs make to different parts of a chat, both stay. */
const PARTS = {
  content: ["messages", "text", "updated"],
  settings: ["system", "sampling"],
  model: ["model"],
  title: ["title", "isTitled"],
};

/**
 * What tabs tell each other: `kept` that a chat was written to the database, `busy` and `idle` that the tab begins and ends
 * to answer it, `removed` that it was deleted, and `asked` that every tab is to tell what it answers.
 * @typedef {"kept" | "busy" | "idle" | "removed" | "asked"} Told
 * @typedef {keyof typeof PARTS} Part
 */

const ALL = /** @type {Part[]} */ (Object.keys(PARTS));

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
 * Sends `list` when the list changes, `current` when another chat is shown or the shown one was changed elsewhere, `removed`
 * when a chat is deleted, and `problem` if chats cannot be kept.
 */
export class Library extends EventTarget {
  #store = new ChatStore();
  /** Chats that were read. @type {Map<string, Chat>} */
  #chats = new Map();
  /** Those of them that the database has. @type {Set<string>} */
  #kept = new Set();
  /** Chats that were deleted. What is still being written in one does not bring it back. @type {Set<string>} */
  #removed = new Set();
  /** What was changed here and is not kept yet, with the number of the change. @type {Map<string, Map<Part, number>>} */
  #changes = new Map();
  #lastChange = 0;
  /** @type {Map<string, number>} */
  #timers = new Map();
  /** Chats that another tab answers, with the time at which it said so. @type {Map<string, number>} */
  #elsewhere = new Map();
  #channel = new BroadcastChannel("mlxcel-chats");
  /** @type {import("./store.js").Entry[]} */
  entries = [];
  /** @type {Chat} */
  current = newChat();
  /** Says whether a chat is being answered here, so that another tab's copy does not replace it. @type {(id: string) => boolean} */
  isBusy = () => false;

  async open() {
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    this.#channel.postMessage({ is: "asked" });
    const entries = await this.#store.open();
    if (entries) this.entries = entries;
    else this.#problem("This browser keeps no data for this page: chats are lost when the tab is closed.");
    addEventListener("pagehide", () => this.#leave());
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

  /** @param {string} id @param {Told} is */
  #tellTabs(id, is) {
    this.#channel.postMessage({ id, is });
  }

  /**
   * Follows what another tab tells.
   * @param {{ id: string, is: Told }} told
   */
  #hear({ id, is }) {
    if (is === "asked") {
      for (const one of this.#chats.keys()) if (this.isBusy(one)) this.tellBusy(one);
    } else if (is === "removed") {
      this.#forget(id);
    } else {
      if (is === "busy") this.#elsewhere.set(id, performance.now());
      this.#reload(id, is === "idle");
    }
  }

  /**
   * Reads the list again, and what another tab changed of a chat.
   * @param {string} id
   * @param {boolean} isIdle whether the other tab no longer answers it
   */
  async #reload(id, isIdle) {
    const wasRemoved = this.#removed.has(id);
    const [entries, kept] = await Promise.all([this.#store.list(), this.#store.load(id)]);
    // Not before: what is sent here goes on from what was written there.
    if (isIdle) this.#elsewhere.delete(id);
    // The other tab has put it back.
    if (kept && wasRemoved) this.#removed.delete(id);
    const chat = this.#chats.get(id);
    if (chat && kept) this.#takeOver(chat, kept);
    if (chat) this.#close(chat);
    if (this.#store.isOpen) this.#list(entries);
    this.#tell("list");
    if (chat === this.current) this.#tell("current");
  }

  /**
   * Takes over what another tab kept of a chat, except for what has changed here.
   * @param {Chat} chat
   * @param {Chat} kept
   */
  #takeOver(chat, kept) {
    this.#kept.add(chat.id);
    const changed = this.#changes.get(chat.id);
    const isOurs = (/** @type {Part} */ part) => changed?.has(part) || (part === "content" && this.isBusy(chat.id));
    const parts = ALL.filter((part) => !isOurs(part));
    const messages = parts.includes("content") ? sameMessages(chat.messages, kept.messages) : chat.messages;
    copyParts({ ...kept, messages }, chat, parts);
  }

  /**
   * Ends the answers that nobody writes any more, because their page was closed.
   * @param {Chat} chat
   */
  #close(chat) {
    if (this.isBusy(chat.id) || this.#elsewhere.has(chat.id)) return;
    for (const message of chat.messages) {
      if (message.isOpen) Object.assign(message, { isOpen: false, isStopped: true });
    }
  }

  /**
   * Lists what the database has, except for chats that have changed here.
   * @param {import("./store.js").Entry[]} kept
   */
  #list(kept) {
    const isOurs = (/** @type {string} */ id) => this.#changes.has(id) || this.isBusy(id);
    const ours = this.entries.filter(({ id }) => isOurs(id)).map((entry) => entryOf(this.#chats.get(entry.id) ?? entry));
    const theirs = kept.filter(({ id }) => !isOurs(id) && !this.#removed.has(id));
    this.entries = [...ours, ...theirs].sort(byTime);
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
    if (this.#removed.has(id)) return null;
    const known = this.#chats.get(id);
    if (known) return known;
    try {
      const chat = await this.#store.load(id);
      if (chat) this.#kept.add(id);
      return chat ?? null;
    } catch (error) {
      this.#problem(`A chat cannot be read: ${error}.`);
      return null;
    }
  }

  /**
   * Shows a chat. Returns whether there is one with this id.
   * @param {string} id
   */
  async select(id) {
    if (this.current.id === id) return true;
    const chat = await this.get(id);
    if (!chat) return false;
    this.#close(chat);
    this.#show(chat);
    return true;
  }

  /**
   * Notes that parts of a chat changed, and keeps them soon.
   * @param {Chat} chat
   * @param {Part[]} parts
   * @param {{ isNewer?: boolean }} [how] `isNewer` moves it to the top of the list
   */
  changed(chat, parts, { isNewer = true } = {}) {
    if (this.#removed.has(chat.id)) return;
    if (isNewer) chat.updated = Date.now();
    if (this.#note(chat, parts)) this.#tell("list");
  }

  /**
   * Enters a chat that has changed. Returns whether the list looks different.
   * @param {Chat} chat
   * @param {Part[]} parts
   */
  #note(chat, parts) {
    const { id } = chat;
    if (!chat.isTitled) chat.title = titleOf(chat);
    this.#chats.set(id, chat);
    const at = this.entries.findIndex((entry) => entry.id === id);
    const isKnown = at >= 0;
    if (!isKnown && isEmpty(chat)) return false;
    const changes = this.#changes.get(id) ?? new Map();
    this.#lastChange += 1;
    for (const part of parts) changes.set(part, this.#lastChange);
    this.#changes.set(id, changes);
    if (!this.#timers.has(id)) this.#timers.set(id, setTimeout(() => this.#save(id), SAVE_AFTER));
    const title = isKnown ? this.entries[at].title : null;
    const others = this.entries.filter((entry) => entry.id !== id);
    // Where it was, so that chats of the same time keep their order.
    this.entries = others.toSpliced(Math.max(at, 0), 0, entryOf(chat)).sort(byTime);
    return title !== chat.title || this.entries[at].id !== id;
  }

  /** Keeps what has changed. */
  async flush() {
    await Promise.all([...this.#timers.keys()].map((id) => this.#save(id)));
  }

  /** Keeps what has changed and tells other tabs, before the page is closed. */
  #leave() {
    for (const id of this.#changes.keys()) this.#save(id, true);
    for (const id of this.#chats.keys()) if (this.isBusy(id)) this.#tellTabs(id, "idle");
  }

  /**
   * @param {string} id
   * @param {boolean} [isLast] whether the page is closed, so that nothing can be read before it is written
   */
  async #save(id, isLast = false) {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    const chat = this.#chats.get(id);
    const changes = new Map(this.#changes.get(id));
    if (!chat || !changes.size || !this.#store.isOpen) return;
    try {
      if (isLast) await this.#store.replace(chat);
      else if (!(await this.#merge(chat, [...changes.keys()]))) return this.#forget(id);
      this.#confirm(id, changes);
      this.#problem(null);
      this.#tellTabs(id, "kept");
    } catch (error) {
      const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
      const why = isFull ? "the browser's storage for this page is full" : String(error);
      this.#problem(`This chat is not kept: ${why}. Export your chats, then delete some.`);
    }
  }

  /**
   * Writes parts of a chat into what is kept of it. Returns `null` if another tab has deleted it.
   * @param {Chat} chat
   * @param {Part[]} parts
   */
  #merge(chat, parts) {
    return this.#store.update(chat.id, (kept) => {
      if (kept) return copyParts(chat, { ...kept }, parts);
      return this.#kept.has(chat.id) || this.#removed.has(chat.id) ? null : chat;
    });
  }

  /**
   * Notes that changes are kept, unless there are newer ones.
   * @param {string} id
   * @param {Map<Part, number>} changes
   */
  #confirm(id, changes) {
    const left = this.#changes.get(id);
    if (!left) return;
    this.#kept.add(id);
    for (const [part, change] of changes) if (left.get(part) === change) left.delete(part);
    if (!left.size) this.#changes.delete(id);
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
    this.changed(chat, ["title"], { isNewer: false });
    this.#tell("list");
    if (chat === this.current) this.#tell("title");
  }

  /**
   * Forgets a chat that was deleted. What is being written in it ends.
   * @param {string} id
   */
  #forget(id) {
    clearTimeout(this.#timers.get(id));
    for (const known of [this.#timers, this.#changes, this.#chats, this.#kept, this.#elsewhere]) known.delete(id);
    this.#removed.add(id);
    this.entries = this.entries.filter((entry) => entry.id !== id);
    this.dispatchEvent(new CustomEvent("removed", { detail: id }));
    if (this.current.id === id) this.begin();
    else this.#tell("list");
  }

  /**
   * Deletes a chat. Returns it, so that it can be put back.
   * @param {string} id
   */
  async remove(id) {
    const chat = await this.get(id);
    this.#forget(id);
    await this.#store.remove(id);
    this.#tellTabs(id, "removed");
    return chat;
  }

  /**
   * Takes chats that were deleted, or that come from a file.
   * @param {Chat[]} chats
   */
  put(chats) {
    for (const chat of chats) {
      this.#removed.delete(chat.id);
      this.#note(chat, ALL);
    }
    this.#tell("list");
  }

  /** Returns all chats. */
  async all() {
    const chats = await Promise.all(this.entries.map(({ id }) => this.get(id)));
    return /** @type {Chat[]} */ (chats.filter(Boolean));
  }

  /**
   * Tells other tabs whether a chat is being answered here.
   * @param {string} id
   */
  async tellBusy(id) {
    // They go on from what they read then.
    if (!this.isBusy(id)) await this.flush();
    this.#tellTabs(id, this.isBusy(id) ? "busy" : "idle");
  }

  /**
   * Returns whether another tab answers a chat.
   * @param {string} id
   */
  isBusyElsewhere(id) {
    return this.#elsewhere.has(id);
  }

  /**
   * Asks the other tabs whether they still answer a chat: one that has crashed never said that it ended.
   * @param {string} id
   */
  askElsewhere(id) {
    const asked = performance.now();
    this.#channel.postMessage({ is: "asked" });
    setTimeout(() => {
      if ((this.#elsewhere.get(id) ?? Infinity) < asked) this.#reload(id, true);
    }, ANSWERS_WITHIN);
  }
}

/**
 * @param {import("./store.js").Entry} one
 * @param {import("./store.js").Entry} other
 */
function byTime(one, other) {
  return other.updated - one.updated;
}

/**
 * @param {import("./store.js").Entry} chat
 * @returns {import("./store.js").Entry}
 */
function entryOf({ id, title, updated }) {
  return { id, title, updated };
}

/**
 * Copies parts of a chat into another one, and returns it.
 * @param {Chat} from
 * @param {Chat} to
 * @param {Part[]} parts
 */
function copyParts(from, to, parts) {
  const names = parts.flatMap((part) => PARTS[part]);
  Object.assign(to, Object.fromEntries(names.map((name) => [name, /** @type {any} */ (from)[name]])));
  if (!to.isTitled) to.title = titleOf(to);
  return to;
}

/**
 * Returns messages that were read. Those that are shown already are the same objects, so that their views stay.
 * @param {Message[]} shown
 * @param {Message[]} read
 */
function sameMessages(shown, read) {
  const known = new Map(shown.map((message) => [message.id, message]));
  return read.map((message) => {
    const one = /** @type {any} */ (known.get(message.id));
    if (!one) return message;
    for (const name of Object.keys(one)) if (!(name in message)) delete one[name];
    return Object.assign(one, message);
  });
}

/** @param {Chat} chat */
function titleOf(chat) {
  const first = chat.messages.find(({ role }) => role === "user")?.content || chat.text;
  const line = first.trim().split("\n", 1)[0].slice(0, 200);
  if (line.length <= TITLE_LENGTH) return line || UNTITLED;
  return `${line.slice(0, TITLE_LENGTH).replace(/\s+\S*$/, "")}…`;
}
