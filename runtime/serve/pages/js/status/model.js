// @ts-check
/** What a model does, as numbers, bars and plots. */

import { el, svg } from "../shared/dom.js";
import { bytes, count, short } from "../shared/format.js";
import { Plot } from "./plot.js";

/**
 * @typedef {{
 *   window: number | null, pages: number, free: number, cached: number, in_use: number, page_bytes: number
 * }} Pool
 * @typedef {{
 *   name: string, digest: string, target: string, device: string, context: number,
 *   queue: { waiting: number, limit: number }, running: number, rows_per_step: number | null, cache: Pool[],
 *   totals: Record<string, number>, history: { interval_seconds: number, points: import("./plot.js").Point[] }
 * }} ModelStatus
 */

const REQUESTS = [
  { field: "running", label: "running" },
  { field: "waiting", label: "waiting" },
];

/** Points over which the rates in the tiles are averaged. */
const RECENT = 3;

export class ModelView {
  #facts = el("p");
  #tiles = el("dl", { class: "tiles" });
  #pools = el("div");
  #totals = el("dl", { class: "facts" });
  #plots = [
    new Plot("Generated", "tokens/s", [{ field: "generated_tokens_per_second", label: "generated" }]),
    new Plot("Prompts", "tokens/s", [{ field: "prompt_tokens_per_second", label: "prompts" }]),
    new Plot("Requests", "requests", REQUESTS, 4),
  ];

  /** @param {string} name */
  constructor(name) {
    const heading = el("h2", {}, name);
    this.element = el(
      "section",
      { class: "model", "aria-label": name },
      el("div", { class: "model-head" }, heading, this.#facts),
      this.#tiles,
      el("div", { class: "plots" }, ...this.#plots.map((plot) => plot.element)),
      el(
        "div",
        { class: "lower" },
        el("div", { class: "box" }, el("h3", {}, "Cache"), this.#pools),
        el("div", { class: "box" }, el("h3", {}, "Totals"), this.#totals),
      ),
    );
  }

  /** @param {ModelStatus} model */
  update(model) {
    const { digest, target, device, context, cache, totals, history } = model;
    const [kind, hex] = digest.includes(":") ? digest.split(":", 2) : ["", digest];
    const start = el("span", { class: "mono", title: digest }, `${kind}${kind && ":"}${hex.slice(0, 16)}…`);
    this.#facts.replaceChildren(`${target} · ${device} · ${count(context)} tokens of context · `, start);
    this.#tiles.replaceChildren(...tilesOf(model));
    for (const plot of this.#plots) plot.update(history.points);
    this.#pools.replaceChildren(...cache.map((pool) => poolOf(pool)));
    if (!cache.length) this.#pools.replaceChildren(el("p", { class: "empty" }, "This model has no cache."));
    this.#totals.replaceChildren(...totalsOf(totals));
  }
}

/** @param {ModelStatus} model */
function tilesOf({ queue, running, rows_per_step: rows, cache, history }) {
  const recent = history.points.slice(-RECENT);
  const rate = (/** @type {string} */ field) => {
    const sum = recent.reduce((total, point) => total + Number(point[field] ?? 0), 0);
    return recent.length ? short(Math.round((sum / recent.length) * 10) / 10) : "–";
  };
  // The fullest pool, because a request needs pages of each.
  const shares = cache.filter(({ pages }) => pages).map(({ pages, in_use: inUse }) => inUse / pages);
  const isFull = queue.limit > 0 && queue.waiting >= queue.limit;
  return [
    tile("Running", count(running)),
    tile("Waiting", count(queue.waiting), `of ${count(queue.limit)}`, isFull),
    tile("Rows per step", rows === null ? "–" : short(rows), "last minute"),
    tile("Generated", rate("generated_tokens_per_second"), "tokens/s"),
    tile("Prompts", rate("prompt_tokens_per_second"), "tokens/s"),
    tile("Cache in use", shares.length ? `${short(Math.round(Math.max(...shares) * 100))} %` : "–"),
  ];
}

/**
 * @param {string} term
 * @param {string} value
 * @param {string} [more]
 * @param {boolean} [isAlarm]
 */
function tile(term, value, more = "", isAlarm = false) {
  const description = el("dd", {}, value, more && el("small", {}, ` ${more}`));
  return el("div", { class: isAlarm ? "tile alarm" : "tile" }, el("dt", {}, term), description);
}

/** @param {Pool} pool */
function poolOf({ window, pages, free, cached, in_use: inUse, page_bytes: pageBytes }) {
  const name = window === null ? "All positions" : `Window of ${count(window)}`;
  const share = (/** @type {number} */ part) => (pages ? (part / pages) * 100 : 0);
  const bar = (/** @type {string} */ kind, /** @type {number} */ from, /** @type {number} */ part) =>
    svg("rect", { class: kind, x: share(from), width: share(part), y: 0, height: 10 });
  const parts = [`${count(inUse)} in use`, `${count(cached)} cached`, `${count(free)} free`];
  const label = `${name}, ${count(pages)} pages: ${parts.join(", ")}`;
  const frame = { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label };
  const size = `${count(pages)} pages of ${bytes(pageBytes)}, ${bytes(pages * pageBytes)}`;
  const kinds = ["in-use", "cached", "free"];
  const key = parts.map((text, index) => el("span", { class: kinds[index] }, text));
  return el(
    "div",
    { class: "pool" },
    el("div", { class: "pool-head" }, el("span", {}, name), el("span", { class: "muted" }, size)),
    svg("svg", frame, bar("bar-in-use", 0, inUse), bar("bar-cached", inUse, cached)),
    el("div", { class: "key", "aria-hidden": "true" }, ...key),
  );
}

/** @param {Record<string, number>} totals */
function totalsOf(totals) {
  /** @type {[string, number][]} */
  const rows = [
    ["Requests", totals.requests],
    ["Prompt tokens", totals.prompt_tokens],
    ["of these cached", totals.cached_tokens],
    ["Generated tokens", totals.generated_tokens],
    ["Steps", totals.steps],
    ["Rows", totals.rows],
  ];
  return rows.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, count(value))]);
}
