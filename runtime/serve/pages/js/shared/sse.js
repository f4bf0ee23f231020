// @ts-check
/** Reads server-sent events from text that comes in pieces. */

/** @typedef {{ event: string, data: string }} ServerEvent */

export class EventParser {
  #rest = "";
  #event = "";
  /** @type {string[]} */
  #data = [];
  #isFirst = true;

  /**
   * Takes more text, and returns the events that it completes.
   * @param {string} text
   * @returns {ServerEvent[]}
   */
  push(text) {
    if (this.#isFirst && text) {
      this.#isFirst = false;
      text = text.replace(/^\ufeff/, "");
    }
    const all = this.#rest + text;
    /** @type {ServerEvent[]} */
    const events = [];
    let start = 0;
    for (let at = 0; at < all.length; at += 1) {
      const char = all[at];
      if (char !== "\n" && char !== "\r") continue;
      // A carriage return at the end may be half of a line's end.
      if (char === "\r" && at + 1 === all.length) break;
      this.#line(all.slice(start, at), events);
      if (char === "\r" && all[at + 1] === "\n") at += 1;
      start = at + 1;
    }
    this.#rest = all.slice(start);
    return events;
  }

  /**
   * @param {string} line
   * @param {ServerEvent[]} events
   */
  #line(line, events) {
    if (line === "") {
      if (this.#data.length) events.push({ event: this.#event || "message", data: this.#data.join("\n") });
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    if (name === "event") this.#event = value;
  }
}
