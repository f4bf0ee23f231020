// @ts-check
/** Finds emphasis, code, links and line breaks in the text of a block. */

/**
 * @typedef {(
 *   | { type: "text", text: string }
 *   | { type: "code", text: string }
 *   | { type: "break" }
 *   | { type: "strong" | "em" | "del", children: Inline[] }
 *   | { type: "link", href: string, title: string, children: Inline[] }
 * )} Inline
 * @typedef {{ node: Inline, depth?: number, mark?: Mark | null }} Entry
 * @typedef {{ char: string, count: number, opens: boolean, closes: boolean }} Mark
 */

const PUNCTUATION = /[\p{P}\p{S}]/u;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };
const URL_START = /^(?:https?:\/\/|mailto:)/i;
/** The text of a link is searched for no further than this. */
const MAX_LINK = 2048;
/** Of what is nested deeper, the text stays. */
const MAX_DEPTH = 20;
/** Brackets within an address are nested no deeper. */
const MAX_BRACKETS = 32;

/**
 * Returns the address of a link, or `null` if the page does not link to it.
 * @param {string} address
 */
export function safeAddress(address) {
  // Browsers skip control characters in schemes.
  const plain = address.replace(/[\u0000-\u0020\u007f-\u009f]/g, "");
  if (!URL_START.test(plain)) return null;
  try {
    const { protocol, href } = new URL(plain);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null;
  } catch {
    return null;
  }
}

/** Reads a text from its beginning to its end. */
class Scanner {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.plain = "";
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {{ index: number, isImage: boolean }[]} */
    this.brackets = [];
    /** Lengths of runs of backticks that are known to have no end. @type {Set<number>} */
    this.unclosed = new Set();
  }

  flush() {
    if (this.plain) this.entries.push({ node: { type: "text", text: this.plain } });
    this.plain = "";
  }

  /** @param {Inline} node */
  push(node) {
    this.flush();
    this.entries.push({ node });
  }

  run() {
    const { text } = this;
    while (this.at < text.length) {
      const char = text[this.at];
      if (char === "\\") this.#escape();
      else if (char === "`") this.#code();
      else if (char === "\n") this.#newline();
      else if (char === "*" || char === "_" || char === "~") this.#delimiters(char);
      else if (char === "[") this.#open(false, 1);
      else if (char === "!" && text[this.at + 1] === "[") this.#open(true, 2);
      else if (char === "]") this.#close();
      else if (char === "<") this.#angle();
      else if (char === "&") this.#entity();
      else if ((char === "h" || char === "H") && this.#address()) continue;
      else {
        this.plain += char;
        this.at += 1;
      }
    }
    this.flush();
    return emphasize(this.entries).map(({ node }) => node);
  }

  #escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") {
      this.push({ type: "break" });
      this.at += 2;
    } else if (next !== undefined && ESCAPABLE.test(next)) {
      this.plain += next;
      this.at += 2;
    } else {
      this.plain += "\\";
      this.at += 1;
    }
  }

  #newline() {
    this.plain = this.plain.trimEnd();
    this.push({ type: "break" });
    this.at += 1;
  }

  #code() {
    const { text } = this;
    let end = this.at;
    while (text[end] === "`") end += 1;
    const length = end - this.at;
    let from = end;
    while (!this.unclosed.has(length)) {
      const start = text.indexOf("`", from);
      if (start < 0) {
        this.unclosed.add(length);
        break;
      }
      from = start;
      while (text[from] === "`") from += 1;
      if (from - start !== length) continue;
      let code = text.slice(end, start).replace(/\n/g, " ");
      if (code.startsWith(" ") && code.endsWith(" ") && code.trim()) code = code.slice(1, -1);
      this.push({ type: "code", text: code });
      this.at = from;
      return;
    }
    this.plain += text.slice(this.at, end);
    this.at = end;
  }

  /** @param {string} char */
  #delimiters(char) {
    const { text } = this;
    let end = this.at;
    while (text[end] === char) end += 1;
    const before = this.at > 0 ? text[this.at - 1] : " ";
    const after = end < text.length ? text[end] : " ";
    const [spaceBefore, spaceAfter] = [/\s/.test(before), /\s/.test(after)];
    const [pointBefore, pointAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
    const left = !spaceAfter && (!pointAfter || spaceBefore || pointBefore);
    const right = !spaceBefore && (!pointBefore || spaceAfter || pointAfter);
    const count = end - this.at;
    const run = text.slice(this.at, end);
    this.at = end;
    if (char === "~" && count !== 2) {
      this.plain += run;
      return;
    }
    // Underscores within a word are part of it.
    const opens = char === "_" ? left && (!right || pointBefore) : left;
    const closes = char === "_" ? right && (!left || pointAfter) : right;
    this.flush();
    this.entries.push({ node: { type: "text", text: run }, mark: { char, count, opens, closes } });
  }

  /**
   * @param {boolean} isImage
   * @param {number} length
   */
  #open(isImage, length) {
    this.flush();
    this.brackets.push({ index: this.entries.length, isImage });
    this.entries.push({ node: { type: "text", text: this.text.slice(this.at, this.at + length) } });
    this.at += length;
  }

  #close() {
    const bracket = this.brackets.pop();
    const target = bracket && this.#target();
    if (!bracket || !target) {
      this.plain += "]";
      this.at += 1;
      return;
    }
    this.flush();
    const inner = this.entries.splice(bracket.index).slice(1);
    const children = emphasize(inner);
    if (bracket.isImage && !children.length) children.push({ node: { type: "text", text: target.address } });
    const { address, title, end } = target;
    this.at = end;
    const href = safeAddress(address);
    if (!href) {
      // The address stays visible: it is what the model wrote.
      for (const child of children) this.entries.push(child);
      this.plain = address ? ` (${address})` : "";
      return;
    }
    // An image is a link to it: the page loads nothing from elsewhere.
    wrap(this.entries, children, (nodes) => ({ type: "link", href, title, children: nodes }));
    // No link is inside a link.
    if (!bracket.isImage) this.brackets = [];
  }

  /** Reads `(address "title")` after the bracket. */
  #target() {
    const { text } = this;
    if (text[this.at + 1] !== "(") return null;
    const part = text.slice(this.at + 2, this.at + 2 + MAX_LINK);
    const angle = /^\s*<([^<>\n]*)>/.exec(part);
    let address = "";
    let at = 0;
    if (angle) {
      address = angle[1];
      at = angle[0].length;
    } else {
      at = part.length - part.trimStart().length;
      const start = at;
      for (let depth = 0; at < part.length && !/\s/.test(part[at]); at += 1) {
        if (part[at] === "(") depth += 1;
        if (depth > MAX_BRACKETS) return null;
        if (part[at] === ")") {
          if (depth === 0) break;
          depth -= 1;
        }
      }
      address = part.slice(start, at);
    }
    const rest = /^(?:\s+(?:"([^"]*)"|'([^']*)'))?\s*\)/.exec(part.slice(at));
    if (!rest) return null;
    return { address, title: rest[1] ?? rest[2] ?? "", end: this.at + 2 + at + rest[0].length };
  }

  #angle() {
    const part = this.text.slice(this.at, this.at + MAX_LINK);
    const lineBreak = /^<br\s*\/?>/i.exec(part);
    if (lineBreak) {
      this.push({ type: "break" });
      this.at += lineBreak[0].length;
      return;
    }
    const link = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i.exec(part);
    const href = link && safeAddress(link[1]);
    if (link && href) {
      this.push({ type: "link", href, title: "", children: [{ type: "text", text: link[1] }] });
      this.at += link[0].length;
      return;
    }
    this.plain += "<";
    this.at += 1;
  }

  #entity() {
    const found = /^&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,7})|#[xX]([\da-fA-F]{1,6}));/.exec(
      this.text.slice(this.at, this.at + 12),
    );
    if (!found) {
      this.plain += "&";
      this.at += 1;
      return;
    }
    const [whole, name, decimal, hex] = found;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    const isValid = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    if (name) this.plain += ENTITIES[/** @type {keyof typeof ENTITIES} */ (name)];
    else this.plain += isValid ? String.fromCodePoint(code) : "\ufffd";
    this.at += whole.length;
  }

  /** Reads an address that stands in the text. */
  #address() {
    if (this.at > 0 && /[\p{L}\p{N}_]/u.test(this.text[this.at - 1])) return false;
    const found = /^https?:\/\/[^\s<>"`]+/i.exec(this.text.slice(this.at, this.at + MAX_LINK));
    if (!found) return false;
    let address = found[0];
    // Punctuation at the end belongs to the sentence, and so does a bracket that the address does not open.
    for (let last = address.at(-1) ?? ""; last; last = address.at(-1) ?? "") {
      const isOpen = last === ")" && address.split(")").length > address.split("(").length;
      if (!isOpen && !/[.,;:!?'*_~\]]/.test(last)) break;
      address = address.slice(0, -1);
    }
    const href = safeAddress(address);
    if (!href || !/^https?:\/\/./i.test(address)) return false;
    this.push({ type: "link", href, title: "", children: [{ type: "text", text: address }] });
    this.at += address.length;
    return true;
  }
}

/** @param {Mark} mark */
function kindOf(mark) {
  return `${mark.char}${mark.opens ? mark.count % 3 : "-"}`;
}

/**
 * Pairs the runs of `*`, `_` and `~~`, by CommonMark's rules.
 * @param {Entry[]} entries
 * @returns {Entry[]}
 */
function emphasize(entries) {
  /** @type {Entry[]} */
  const done = [];
  /** Positions in `done` of runs that may open, innermost last. @type {number[]} */
  const openers = [];
  /** Where the search for an opener of a kind may stop. @type {Map<string, number>} */
  const bottoms = new Map();
  for (const entry of entries) {
    const { mark } = entry;
    if (!mark) {
      done.push(entry);
      continue;
    }
    while (mark.closes && mark.count > 0) {
      const kind = kindOf(mark);
      const bottom = bottoms.get(kind) ?? 0;
      let found = openers.length - 1;
      while (found >= bottom && !matches(done[openers[found]].mark, mark)) found -= 1;
      if (found < bottom) {
        bottoms.set(kind, openers.length);
        break;
      }
      const position = openers[found];
      const opener = /** @type {Mark} */ (done[position].mark);
      const used = mark.char === "~" || (opener.count >= 2 && mark.count >= 2) ? 2 : 1;
      const children = done.splice(position + 1);
      const type = mark.char === "~" ? "del" : used === 2 ? "strong" : "em";
      opener.count -= used;
      mark.count -= used;
      openers.length = opener.count > 0 ? found + 1 : found;
      for (const [known, at] of bottoms) bottoms.set(known, Math.min(at, openers.length));
      if (opener.count > 0) done[position].node = { type: "text", text: mark.char.repeat(opener.count) };
      else done.pop();
      wrap(done, children, (nodes) => ({ type, children: nodes }));
    }
    if (mark.count === 0) continue;
    if (mark.opens) openers.push(done.length);
    done.push({ node: { type: "text", text: mark.char.repeat(mark.count) }, mark: mark.opens ? mark : null });
  }
  return done;
}

/**
 * Appends a node around entries.
 * @param {Entry[]} entries
 * @param {Entry[]} children
 * @param {(nodes: Inline[]) => Inline} make
 */
function wrap(entries, children, make) {
  let depth = 0;
  for (const child of children) depth = Math.max(depth, child.depth ?? 0);
  const nodes = children.map(({ node }) => node);
  const flat = depth < MAX_DEPTH ? nodes : [{ type: /** @type {const} */ ("text"), text: textOf(nodes) }];
  entries.push({ node: make(flat), depth: depth < MAX_DEPTH ? depth + 1 : 1 });
}

/**
 * @param {Inline[]} nodes
 * @returns {string}
 */
function textOf(nodes) {
  const texts = nodes.map((node) => {
    if (node.type === "break") return "\n";
    return "children" in node ? textOf(node.children) : node.text;
  });
  return texts.join("");
}

/**
 * @param {Mark | null | undefined} opener
 * @param {Mark} closer
 */
function matches(opener, closer) {
  if (!opener || opener.char !== closer.char || opener.count === 0) return false;
  const isOdd = opener.closes || closer.opens;
  return !(isOdd && (opener.count + closer.count) % 3 === 0 && (opener.count % 3 || closer.count % 3));
}

/**
 * Returns what a text consists of.
 * @param {string} text
 * @returns {Inline[]}
 */
export function parseInline(text) {
  return new Scanner(text).run();
}
