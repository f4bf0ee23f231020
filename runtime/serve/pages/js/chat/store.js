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

export class ChatStore {
  /** @type {IDBDatabase | null} */
  #database = null;

  /** Opens the database. Returns whether chats can be kept. */
  async open() {
    try {
      this.#database = await openDatabase();
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Runs `use` on both stores, and waits until its changes are kept.
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(entries: IDBObjectStore, chats: IDBObjectStore) => IDBRequest<T>} use
   * @returns {Promise<T | undefined>}
   */
  async #run(mode, use) {
    if (!this.#database) return undefined;
    const transaction = this.#database.transaction([ENTRIES, CHATS], mode);
    const request = use(transaction.objectStore(ENTRIES), transaction.objectStore(CHATS));
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? request.error);
    });
    return request.result;
  }

  /** Returns the entries of all chats, the newest first. @returns {Promise<Entry[]>} */
  async list() {
    const entries = (await this.#run("readonly", (store) => store.getAll())) ?? [];
    return entries.sort((one, other) => other.updated - one.updated);
  }

  /** @param {string} id @returns {Promise<Chat | undefined>} */
  load(id) {
    return this.#run("readonly", (_, chats) => chats.get(id));
  }

  /** @param {Chat} chat */
  async save(chat) {
    const { id, title, updated } = chat;
    await this.#run("readwrite", (entries, chats) => {
      entries.put({ id, title, updated });
      return chats.put(chat);
    });
  }

  /** @param {string} id */
  async remove(id) {
    await this.#run("readwrite", (entries, chats) => {
      entries.delete(id);
      return chats.delete(id);
    });
  }
}
