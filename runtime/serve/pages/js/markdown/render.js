// @ts-check
/** Draws markdown as elements, and keeps what is drawn while a text grows. */

import { el, iconButton, icon } from "../shared/dom.js";
import { parseBlocks } from "./blocks.js";
import { parseInline } from "./inline.js";

/**
 * @param {import("./inline.js").Inline[]} nodes
 * @returns {Node[]}
 */
function inlineNodes(nodes) {
  return nodes.map((node) => {
    switch (node.type) {
      case "text":
        return document.createTextNode(node.text);
      case "code":
        return el("code", {}, node.text);
      case "break":
        return el("br");
      case "link": {
        const props = { href: node.href, title: node.title || null, rel: "noopener noreferrer", target: "_blank" };
        return el("a", props, inlineNodes(node.children));
      }
      default:
        return el(node.type, {}, inlineNodes(node.children));
    }
  });
}

/** @param {string} text */
function inline(text) {
  return inlineNodes(parseInline(text));
}

/** @param {HTMLElement} code */
async function copy(code, /** @type {HTMLButtonElement} */ button) {
  const text = code.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS there may be no clipboard. What is selected can be copied by hand.
    getSelection()?.selectAllChildren(code);
    button.setAttribute("aria-label", "Selected: press Ctrl+C");
    return;
  }
  button.replaceChildren(icon("check"));
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => {
    button.replaceChildren(icon("copy"));
    button.setAttribute("aria-label", "Copy code");
  }, 1600);
}

/**
 * @param {string} language
 * @param {string} text
 */
function codeBlock(language, text) {
  const code = el("code", {}, text);
  const button = iconButton("copy", "Copy code", () => copy(code, button));
  const head = el("div", { class: "code-head" }, el("span", {}, language || "text"), button);
  // A scrolled region has to be reachable by keyboard.
  const label = language ? `Code, ${language}` : "Code";
  return el("div", { class: "code" }, head, el("pre", { tabindex: "0", role: "region", "aria-label": label }, code));
}

/** @param {Extract<import("./blocks.js").Block, { type: "table" }>} table */
function tableOf({ align, header, rows }) {
  /** @type {(tag: string) => (text: string, column: number) => HTMLElement} */
  const cell = (tag) => (text, column) =>
    el(tag, { class: align[column] && `align-${align[column]}`, scope: tag === "th" && "col" }, inline(text));
  const head = el("thead", {}, el("tr", {}, header.map(cell("th"))));
  const body = el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))));
  const region = { class: "table", tabindex: "0", role: "region", "aria-label": "Table" };
  return el("div", region, el("table", {}, head, rows.length > 0 && body));
}

/** @param {Extract<import("./blocks.js").Block, { type: "list" }>} list */
function listOf({ start, isTight, items }) {
  const drawn = items.map(({ children, checked }) => {
    const box = checked !== null && el("input", { type: "checkbox", disabled: true, checked, "aria-label": "Done" });
    const nodes = children.flatMap((child) =>
      isTight && child.type === "paragraph" ? inline(child.text) : [block(child)],
    );
    return el("li", { class: box && "task" }, box, nodes);
  });
  const first = start !== null && start !== 1 ? start : null;
  return el(start === null ? "ul" : "ol", { start: first }, drawn);
}

/**
 * Draws a block.
 * @param {import("./blocks.js").Block} found
 * @returns {HTMLElement}
 */
function block(found) {
  switch (found.type) {
    case "heading":
      // The page has headings of its own above those of an answer.
      return el(`h${Math.min(found.level + 2, 6)}`, { class: `h${found.level}` }, inline(found.text));
    case "paragraph":
      return el("p", {}, inline(found.text));
    case "code":
      return codeBlock(found.language, found.text);
    case "quote":
      return el("blockquote", {}, found.children.map(block));
    case "list":
      return listOf(found);
    case "table":
      return tableOf(found);
    default:
      return el("hr");
  }
}

/** A text that is drawn, and may grow. */
export class MarkdownView {
  /**
   * @param {HTMLElement} root
   * @param {(text: string) => void} [onBlock] is called with the text of each block that is complete
   */
  constructor(root, onBlock) {
    this.root = root;
    /** @type {((text: string) => void) | undefined} */
    this.onBlock = onBlock;
    this.text = "";
    /** Where the blocks begin that may change. */
    this.open = 0;
    /** The elements of these blocks. @type {HTMLElement[]} */
    this.tail = [];
    /** @type {string | null} */
    this.lastCode = null;
    this.isFinished = false;
  }

  /**
   * Draws a text. If it begins with the one before, only its end is drawn anew.
   * @param {string} text
   */
  update(text) {
    if (text === this.text) return;
    // What comes after the end may belong to the last block.
    if (this.isFinished || !text.startsWith(this.text)) {
      this.open = 0;
      this.tail = [];
      this.lastCode = null;
      this.isFinished = false;
      this.root.replaceChildren();
    }
    this.text = text;
    const { blocks, done, end } = parseBlocks(text.slice(this.open));
    if (this.#appendCode(blocks)) return;
    for (const element of this.tail) element.remove();
    const drawn = blocks.map(block);
    for (const element of drawn) this.root.append(element);
    this.tail = drawn.slice(done);
    for (const element of drawn.slice(0, done)) this.onBlock?.(spoken(element));
    this.open += end;
    const only = blocks.at(-1);
    this.lastCode = only?.type === "code" ? only.language : null;
  }

  /** Says the last block, which no other one follows. Nothing is said after it. */
  finish() {
    for (const element of this.tail) this.onBlock?.(spoken(element));
    this.tail = [];
    this.onBlock = undefined;
    this.isFinished = true;
  }

  /**
   * Writes into the code that is there, so that its button keeps the focus.
   * @param {import("./blocks.js").Block[]} blocks
   */
  #appendCode(blocks) {
    const [only] = blocks;
    if (blocks.length !== 1 || only.type !== "code" || only.language !== this.lastCode) return false;
    const code = this.tail[0]?.querySelector("code");
    if (code) code.textContent = only.text;
    return !!code;
  }
}

/** @param {HTMLElement} element */
function spoken(element) {
  const said = element.classList.contains("code") ? element.querySelector("code") : element;
  // Unlike textContent, it divides the items of a list.
  return /** @type {HTMLElement | null} */ (said)?.innerText.trim() ?? "";
}
