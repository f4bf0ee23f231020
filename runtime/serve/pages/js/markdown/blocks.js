// @ts-check
/** Finds the blocks of a markdown text: the part of CommonMark and its tables that models write. */

/**
 * @typedef {{ children: Block[], checked: boolean | null }} ListItem
 * @typedef {"left" | "right" | "center" | null} Align
 * @typedef {(
 *   | { type: "heading", level: number, text: string }
 *   | { type: "paragraph", text: string }
 *   | { type: "code", language: string, text: string }
 *   | { type: "quote", children: Block[] }
 *   | { type: "list", start: number | null, isTight: boolean, items: ListItem[] }
 *   | { type: "table", align: Align[], header: string[], rows: string[][] }
 *   | { type: "rule" }
 * )} Block
 */

/** Quotes and lists that are nested deeper are text. */
const MAX_DEPTH = 12;

/** The columns of a tab. */
const TAB = 4;

/** The expression for such lines takes quadratic time. */
const MAX_DELIMITERS = 1000;

const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}>[ ]?/;
const MARKER = /^( *)([-+*]|(\d{1,9})[.)])(?:([ \t]+)|$)/;
const UNDERLINE = /^ {0,3}(={3,}|-{3,})[ \t]*$/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]+/;

/** @param {string} line */
function indentOf(line) {
  return line.length - line.trimStart().length;
}

/** @param {string} line */
function isBlank(line) {
  return line.trim() === "";
}

/**
 * Returns a line with spaces in place of its tabs.
 * @param {string} line
 */
function expand(line) {
  return line.replaceAll("\t", " ".repeat(TAB));
}

/**
 * Removes the first `count` columns of a line. What is left of a tab is spaces.
 * @param {string} line
 * @param {number} count
 */
function cut(line, count) {
  let at = 0;
  for (; count > 0 && at < line.length; at += 1) count -= line[at] === "\t" ? TAB : 1;
  return " ".repeat(Math.max(0, -count)) + line.slice(at);
}

/**
 * Returns whether a line ends the paragraph before it.
 * @param {string} line
 */
function interrupts(line) {
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
  const marker = MARKER.exec(line);
  // A number in a text is no list, unless it is 1. An empty item needs a list before it.
  return !!marker && marker[4] !== undefined && (marker[3] === undefined || Number(marker[3]) === 1);
}

/**
 * Returns whether a line divides the head of a table from its rows.
 * @param {string | undefined} line
 */
function isDelimiters(line) {
  return line !== undefined && line.length <= MAX_DELIMITERS && line.includes("-") && DELIMITERS.test(line);
}

/**
 * Splits a line of a table into cells.
 * @param {string} line
 */
function cellsOf(line) {
  const cells = [];
  let cell = "";
  const text = line.trim();
  for (let at = text.startsWith("|") ? 1 : 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (text[at] === "|") {
      cells.push(cell.trim());
      cell = "";
    } else {
      cell += text[at];
    }
  }
  if (cell.trim() || !text.endsWith("|")) cells.push(cell.trim());
  return cells;
}

/** Reads the lines of a text, or of a part of it. */
class Reader {
  /**
   * @param {string[]} lines
   * @param {number} depth
   */
  constructor(lines, depth) {
    /** The lines as they are: tabs in code stay, because some languages need them. */
    this.raw = lines;
    this.lines = lines.map(expand);
    this.depth = depth;
    this.at = 0;
  }

  /** Reads the block that begins at the line, which is not blank. */
  next() {
    const line = this.lines[this.at];
    return (
      (indentOf(line) >= 4 && this.#indented()) ||
      this.#fenced() ||
      this.#heading() ||
      this.#rule() ||
      (this.depth < MAX_DEPTH && (this.#quote() || this.#list())) ||
      this.#table() ||
      this.#paragraph()
    );
  }

  /**
   * Removes up to `count` columns from the indentation of a line.
   * @param {number} at
   * @param {number} count
   */
  #unindented(at, count) {
    return cut(this.raw[at], Math.min(indentOf(this.lines[at]), count));
  }

  /** Skips blank lines, and returns whether a line is left. */
  skipBlank() {
    while (this.at < this.lines.length && isBlank(this.lines[this.at])) this.at += 1;
    return this.at < this.lines.length;
  }

  /** @returns {Block | null} */
  #indented() {
    // A list whose first marker is indented too far is still a list.
    if (MARKER.test(this.lines[this.at])) return null;
    const start = this.at;
    let end = this.at;
    while (this.at < this.lines.length) {
      const line = this.lines[this.at];
      if (!isBlank(line) && indentOf(line) < 4) break;
      this.at += 1;
      if (!isBlank(line)) end = this.at;
    }
    this.at = end;
    const text = Array.from({ length: end - start }, (_, index) => this.#unindented(start + index, 4));
    return { type: "code", language: "", text: text.join("\n") };
  }

  /** @returns {Block | null} */
  #fenced() {
    const open = FENCE.exec(this.lines[this.at]);
    if (!open) return null;
    const [, indent, fence, info] = open;
    /** @param {string} line */
    const closes = (line) => {
      const text = line.trim();
      return indentOf(line) < 4 && text.length >= fence.length && text === fence[0].repeat(text.length);
    };
    const text = [];
    this.at += 1;
    // A fence that is not closed reaches to the end: the answer is still being written.
    while (this.at < this.lines.length && !closes(this.lines[this.at])) {
      text.push(this.#unindented(this.at, indent.length));
      this.at += 1;
    }
    if (this.at === this.lines.length && text.at(-1) === "") text.pop();
    this.at += 1;
    return { type: "code", language: info.trim().split(/[\s{,]/, 1)[0], text: text.join("\n") };
  }

  /** @returns {Block | null} */
  #heading() {
    const line = this.lines[this.at];
    const mark = HEADING.exec(line);
    if (!mark) return null;
    this.at += 1;
    const text = line.slice(mark[0].length).trimEnd();
    let end = text.length;
    while (text[end - 1] === "#") end -= 1;
    const isClosed = end === 0 || text[end - 1] === " ";
    return { type: "heading", level: mark[1].length, text: isClosed ? text.slice(0, end).trimEnd() : text };
  }

  /** @returns {Block | null} */
  #rule() {
    if (!RULE.test(this.lines[this.at])) return null;
    this.at += 1;
    return { type: "rule" };
  }

  /** @returns {Block | null} */
  #quote() {
    if (!QUOTE.test(this.lines[this.at])) return null;
    const inner = [];
    for (; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      const mark = QUOTE.exec(line);
      const isLazy = !mark && !isBlank(line) && !isBlank(inner[inner.length - 1]) && !interrupts(line);
      if (!mark && !isLazy) break;
      inner.push(cut(this.raw[this.at], mark ? mark[0].length : 0));
    }
    return { type: "quote", children: blocksOf(inner, this.depth + 1) };
  }

  /** @returns {Block | null} */
  #list() {
    const first = MARKER.exec(this.lines[this.at]);
    if (!first) return null;
    const base = first[1].length;
    const kind = first[2].at(-1);
    /** @type {ListItem[]} */
    const items = [];
    let isTight = true;
    while (this.at < this.lines.length) {
      const mark = MARKER.exec(this.lines[this.at]);
      const isSibling = mark && mark[2].at(-1) === kind && mark[1].length < base + 2;
      if (!mark || !isSibling || RULE.test(this.lines[this.at])) break;
      const { lines, hasGap } = this.#item(mark, base);
      const task = TASK.exec(lines[0]);
      if (task) lines[0] = lines[0].slice(task[0].length);
      items.push({
        children: blocksOf(lines, this.depth + 1),
        checked: task ? task[1] !== " " : null,
      });
      const before = this.at;
      const hasMore = this.skipBlank();
      const next = hasMore ? MARKER.exec(this.lines[this.at]) : null;
      if (hasGap) isTight = false;
      if (!next) {
        this.at = before;
        break;
      }
      if (this.at > before && next[2].at(-1) === kind) isTight = false;
    }
    return { type: "list", start: first[3] === undefined ? null : Number(first[3]), isTight, items };
  }

  /**
   * Reads the lines of an item.
   * @param {RegExpExecArray} mark
   * @param {number} base the indentation of the list
   */
  #item(mark, base) {
    const spaces = mark[4]?.length ?? 1;
    const indent = mark[1].length + mark[2].length + (spaces > 4 ? 1 : spaces);
    const lines = [cut(this.raw[this.at], Math.min(indent, mark[0].length))];
    let hasGap = false;
    let blank = 0;
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (isBlank(line)) {
        blank += 1;
        continue;
      }
      const own = indentOf(line);
      // Models often indent by two, whatever the width of the marker.
      const isInside = own >= indent || (own >= base + 2 && MARKER.test(line));
      const isLazy = blank === 0 && !isBlank(lines[lines.length - 1]) && !interrupts(line) && !MARKER.test(line);
      if (!isInside && !isLazy) break;
      if (blank) hasGap ||= !MARKER.test(line);
      for (; blank > 0; blank -= 1) lines.push("");
      lines.push(this.#unindented(this.at, indent));
    }
    // Blank lines after the item are not its own.
    this.at -= blank;
    return { lines, hasGap };
  }

  /** @returns {Block | null} */
  #table() {
    const [line, under] = [this.lines[this.at], this.lines[this.at + 1]];
    if (!line.includes("|") || !isDelimiters(under)) return null;
    const header = cellsOf(line);
    const marks = cellsOf(under);
    if (header.length !== marks.length) return null;
    const align = marks.map((mark) => {
      if (mark.startsWith(":") && mark.endsWith(":")) return "center";
      if (mark.endsWith(":")) return "right";
      return mark.startsWith(":") ? "left" : null;
    });
    const rows = [];
    for (this.at += 2; this.at < this.lines.length; this.at += 1) {
      const row = this.lines[this.at];
      if (isBlank(row) || interrupts(row)) break;
      const cells = cellsOf(row).slice(0, header.length);
      while (cells.length < header.length) cells.push("");
      rows.push(cells);
    }
    return { type: "table", align: /** @type {Align[]} */ (align), header, rows };
  }

  /** @returns {Block} */
  #paragraph() {
    const text = [this.lines[this.at].trimStart()];
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      const underline = UNDERLINE.exec(line);
      if (underline) {
        this.at += 1;
        return { type: "heading", level: underline[1][0] === "=" ? 1 : 2, text: text.join("\n").trimEnd() };
      }
      if (isBlank(line) || interrupts(line)) break;
      const under = this.lines[this.at + 1];
      if (line.includes("|") && under?.includes("|") && isDelimiters(under)) break;
      text.push(line.trimStart());
    }
    return { type: "paragraph", text: text.join("\n").trimEnd() };
  }
}

/**
 * @param {string[]} lines
 * @param {number} depth
 */
function blocksOf(lines, depth) {
  const reader = new Reader(lines, depth);
  /** @type {Block[]} */
  const blocks = [];
  while (reader.skipBlank()) blocks.push(/** @type {Block} */ (reader.next()));
  return blocks;
}

/**
 * Returns the blocks of a text. What is appended to it changes none of the first `done` ones, which reach to `end`.
 * @param {string} text
 * @returns {{ blocks: Block[], done: number, end: number }}
 */
export function parseBlocks(text) {
  const lines = text.split(/\r\n|\n|\r/);
  const reader = new Reader(lines, 0);
  /** @type {Block[]} */
  const blocks = [];
  /** The lines at which blocks begin. @type {number[]} */
  const starts = [];
  while (reader.skipBlank()) {
    starts.push(reader.at);
    blocks.push(/** @type {Block} */ (reader.next()));
  }
  // The last line is not whole. With more of it, it may belong to the block before.
  const isOpen = starts.length > 1 && starts[starts.length - 1] === lines.length - 1;
  const done = Math.max(0, blocks.length - (isOpen ? 2 : 1));
  const ends = /\r\n|\n|\r/g;
  for (let line = 0; line < (starts[done] ?? 0); line += 1) ends.exec(text);
  return { blocks, done, end: starts[done] ? ends.lastIndex : 0 };
}
