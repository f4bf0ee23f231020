// @ts-check
/** Tables of numbers. */

import { el } from "../shared/dom.js";

/**
 * Makes a table. A column is text if its name begins with a colon.
 * @param {string} label
 * @param {string[]} columns
 * @param {(string | Node)[][]} rows
 */
export function tableOf(label, columns, rows) {
  const kind = columns.map((name) => (name.startsWith(":") ? "text" : null));
  const head = columns.map((name, at) => el("th", { scope: "col", class: kind[at] }, name.replace(/^:/, "")));
  const body = rows.map((row) => el("tr", {}, ...row.map((cell, at) => el("td", { class: kind[at] }, cell))));
  // A scrolled region has to be reachable by keyboard.
  return el(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)),
  );
}
