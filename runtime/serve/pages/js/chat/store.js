// @ts-check
/** Keeps chats in the browser's database: a short entry for the list, and the chat itself. */

const DATABASE = "mlxcel-chats";
const ENTRIES = "entries";
const CHATS = "chats";

/**
 * @typedef {{ id: string, title: string, updated: number }} Entry
 * @typedef {{
 *   id: string, role: "user" | "assistant", content: string, reasoning?: string, calls?: Call[],
 *   model?: string, finish?: string, stats?: Stats, error?: { status: number, message: string },
 *   isOpen?: boolean, isStopped?: boolean
 * }} Message
 * @typedef {{ id?: string, name: string, arguments: string }} Call
 * @typedef {{
 *   firstToken: number | null, rate: number | null, seconds: number,
 *   generated: number | null, prompt: number | null, cached: number | null
 * }} Stats
 * @typedef {{
 *   id: string, title: string, isTitled: boolean, created: number, updated: number, model: string | null,
 *   system: string, sampling: Record<string, number>, messages: Message[], text: string
 * }} Chat
 */

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @returns {Promise<IDBDatabase>} */
function openDatabase() {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(ENTRIES, { keyPath: "id" });
    request.result.createObjectStore(CHATS, { keyPath: "id" });
  };
  return done(request);
}

/**
 * @param {Chat} chat
 * @param {IDBObjectStore} entries
 * @param {IDBObjectStore} chats
 */
function write(chat, entries, chats) {
  const { id, title, updated } = chat;
  entries.put({ id, title, updated });
  chats.put(chat);
}

export class ChatStore {
  /** @type {IDBDatabase | null} */
  #database = null;

  /** Whether chats are kept. */
  get isOpen() {
    return this.#database !== null;
  }

  /**
   * Opens the database, and returns its entries. Returns `null` if it keeps no chats: browsers can forbid it, and what is
   * damaged may open and not be read.
   * @returns {Promise<Entry[] | null>}
   */
  async open() {
    try {
      this.#database = await openDatabase();
      return await this.list();
    } catch {
      this.#database = null;
      return null;
    }
  }

  /**
   * Runs `use` on both stores, and waits until its changes are kept. It may wait for its own requests only.
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(entries: IDBObjectStore, chats: IDBObjectStore) => Promise<T>} use
   * @returns {Promise<T | undefined>}
   */
  async #run(mode, use) {
    if (!this.#database) return undefined;
    const transaction = this.#database.transaction([ENTRIES, CHATS], mode);
    const end = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    const [result] = await Promise.all([use(transaction.objectStore(ENTRIES), transaction.objectStore(CHATS)), end]);
    return result;
  }

  /** Returns the entries of all chats, the newest first. @returns {Promise<Entry[]>} */
  async list() {
    const entries = (await this.#run("readonly", (store) => done(store.getAll()))) ?? [];
    return entries.sort((one, other) => other.updated - one.updated);
  }

  /** @param {string} id @returns {Promise<Chat | undefined>} */
  load(id) {
    return this.#run("readonly", (_, chats) => done(chats.get(id)));
  }

  /**
   * Keeps what `change` makes of the chat that is kept, or nothing if it returns `null`. No other tab can write between.
   * @param {string} id
   * @param {(kept: Chat | undefined) => Chat | null} change
   */
  update(id, change) {
    return this.#run("readwrite", async (entries, chats) => {
      const chat = change(await done(chats.get(id)));
      if (chat) write(chat, entries, chats);
      return chat;
    });
  }

  /**
   * Keeps a chat without looking at what is kept.
   * @param {Chat} chat
   */
  async replace(chat) {
    await this.#run("readwrite", async (entries, chats) => write(chat, entries, chats));
  }

  /** @param {string} id */
  async remove(id) {
    await this.#run("readwrite", async (entries, chats) => {
      entries.delete(id);
      chats.delete(id);
    });
  }
}
