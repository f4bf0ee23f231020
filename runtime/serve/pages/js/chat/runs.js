// @ts-check
/** What is being written, at most one answer in a chat. */

/** Sends `change` with the id of the chat when one begins or ends. */
export class Runs extends EventTarget {
  /** @type {Map<string, AbortController>} */
  #running = new Map();

  /** @param {string} chat */
  isRunning(chat) {
    return this.#running.has(chat);
  }

  /**
   * Runs `work`, which `stop` aborts, and waits for its end.
   * @param {string} chat
   * @param {(signal: AbortSignal) => Promise<void>} work
   */
  async start(chat, work) {
    if (this.#running.has(chat)) return;
    const controller = new AbortController();
    this.#running.set(chat, controller);
    this.#changed(chat);
    try {
      await work(controller.signal);
    } finally {
      this.#running.delete(chat);
      this.#changed(chat);
    }
  }

  /** @param {string} chat */
  #changed(chat) {
    this.dispatchEvent(new CustomEvent("change", { detail: chat }));
  }

  /**
   * Stops what is being written in a chat. Returns whether there was something.
   * @param {string} chat
   */
  stop(chat) {
    this.#running.get(chat)?.abort();
    return this.#running.has(chat);
  }
}
