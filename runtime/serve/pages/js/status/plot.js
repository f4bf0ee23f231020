// @ts-check
/** Plots of the last minutes, with a cursor for pointers and keys, and a table of the same numbers. */

import { el, svg } from "../shared/dom.js";
import { clock, short } from "../shared/format.js";
import { ticks } from "./scale.js";
import { tableOf } from "./table.js";

/** @typedef {{ at: number } & Record<string, number | null>} Point */
/** @typedef {{ field: string, label: string }} Series */

/** The plot's height and what is around it, in pixels. */
const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [170, 42, 10, 8, 24];
/** The shortest time that is shown, in seconds. */
const SHORTEST = 120;

export class Plot {
  #svg = svg("svg", { height: HEIGHT, tabindex: "0", role: "slider" });
  #width = 400;
  #tip = el("div", { class: "tip", hidden: true });
  #table = el("div");
  #details = el("details", {}, el("summary", {}, "As a table"), this.#table);
  /** The cursor and its dots. */
  #marks = svg("g");
  /** @type {Point[]} */
  #points = [];
  /** The time that the cursor is at. @type {number | null} */
  #cursor = null;
  #max = 1;
  #span = SHORTEST;

  /**
   * @param {string} title
   * @param {string} unit
   * @param {Series[]} series
   * @param {number} [least] the least value that the axis reaches
   */
  constructor(title, unit, series, least = 1) {
    this.title = title;
    this.unit = unit;
    this.series = series;
    this.least = least;
    const legend = series.map(({ label }, index) => el("span", { class: `series-${index}` }, label));
    const names = series.length > 1 ? legend : [el("span", { class: "unit" }, unit)];
    const head = el("div", { class: "plot-head" }, el("h3", {}, title), el("div", { class: "legend" }, ...names));
    this.element = el("figure", { class: "plot" }, head, this.#svg, this.#tip, this.#details);
    this.#svg.setAttribute("aria-label", `${title}, ${unit}. Arrow keys move through time.`);
    this.#svg.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.#point(event));
    this.#svg.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.#point(event));
    this.#svg.addEventListener("pointerleave", () => this.#at(null));
    this.#svg.addEventListener("blur", () => this.#at(null));
    this.#svg.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.#details.addEventListener("toggle", () => this.#fillTable());
    new ResizeObserver(() => {
      this.#width = this.#svg.clientWidth || this.#width;
      this.update(this.#points);
    }).observe(this.#svg);
  }

  /** @param {Point[]} points */
  update(points) {
    this.#points = points;
    const values = points.flatMap((point) => this.series.map(({ field }) => point[field] ?? 0));
    const steps = ticks(Math.max(this.least, ...values));
    this.#max = steps[steps.length - 1];
    const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 0];
    this.#span = Math.max(SHORTEST, last - first);
    const lines = steps.map((step) => [
      svg("line", { class: "grid", x1: LEFT, x2: this.#width - RIGHT, y1: this.#y(step), y2: this.#y(step) }),
      svg("text", { class: "axis", x: LEFT - 6, y: this.#y(step) + 4, "text-anchor": "end" }, short(step)),
    ]);
    const drawn = this.series.flatMap(({ field }, index) => this.#draw(field, index));
    this.#marks = svg("g");
    this.#svg.replaceChildren(...lines.flat(), ...this.#times(), ...drawn, this.#marks);
    this.#mark();
    if (this.#details.open) this.#fillTable();
  }

  /** @param {number} at */
  #x(at) {
    const end = this.#points.at(-1)?.at ?? 0;
    return this.#width - RIGHT - ((end - at) / this.#span) * (this.#width - LEFT - RIGHT);
  }

  /** @param {number} value */
  #y(value) {
    return HEIGHT - BOTTOM - (value / this.#max) * (HEIGHT - TOP - BOTTOM);
  }

  /** Names the minutes below the plot. */
  #times() {
    const end = this.#points.at(-1)?.at ?? 0;
    const minutes = Math.floor(this.#span / 60);
    const every = Math.max(1, Math.ceil(minutes / 5));
    const labels = [];
    for (let ago = 0; ago <= minutes; ago += every) {
      const text = ago === 0 ? "now" : `−${ago} min`;
      const x = this.#x(end - ago * 60);
      const anchor = ago === 0 ? "end" : x < LEFT + 16 ? "start" : "middle";
      labels.push(svg("text", { class: "axis", x, y: HEIGHT - 7, "text-anchor": anchor }, text));
    }
    return labels;
  }

  /**
   * Draws a line through the points that have a value, with gaps where there is none.
   * @param {string} field
   * @param {number} index
   */
  #draw(field, index) {
    /** @type {Point[][]} */
    const runs = [[]];
    for (const point of this.#points) {
      if (point[field] == null) runs.push([]);
      else runs[runs.length - 1].push(point);
    }
    const shown = runs.filter((run) => run.length > 1);
    const path = (/** @type {Point[]} */ run) =>
      run.map((point) => `${this.#x(point.at).toFixed(1)} ${this.#y(Number(point[field])).toFixed(1)}`).join("L");
    const line = shown.map((run) => `M${path(run)}`).join("");
    const base = this.#y(0);
    const closed = (/** @type {Point[]} */ run) =>
      `M${this.#x(run[0].at)} ${base}L${path(run)}L${this.#x(run[run.length - 1].at)} ${base}Z`;
    const drawn = svg("path", { class: `line series-${index}`, d: line });
    return index > 0 ? [drawn] : [svg("path", { class: "area series-0", d: shown.map(closed).join("") }), drawn];
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const box = this.#svg.getBoundingClientRect();
    const x = event.clientX - box.left;
    const distance = (/** @type {Point} */ { at }) => Math.abs(this.#x(at) - x);
    const [nearest] = [...this.#points].sort((one, other) => distance(one) - distance(other));
    this.#at(nearest?.at ?? null);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.#points.length - 1;
    const here = this.#points.findIndex(({ at }) => at === this.#cursor);
    const from = here < 0 ? last + 1 : here;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") this.#at(null);
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    const to = from + steps[/** @type {keyof typeof steps} */ (event.key)];
    this.#at(this.#points[Math.min(last, Math.max(0, to))].at);
  }

  /** @param {number | null} cursor */
  #at(cursor) {
    this.#cursor = cursor;
    this.#mark();
  }

  /** Shows the numbers at the cursor, and tells screen readers those there, or the newest. */
  #mark() {
    const found = this.#points.findIndex(({ at }) => at === this.#cursor);
    const shown = found >= 0 ? found : this.#points.length - 1;
    const point = this.#points[shown];
    const valueOf = (/** @type {string} */ field) => (point?.[field] == null ? "–" : short(Number(point[field])));
    const texts = this.series.map(({ field, label }) => [label, valueOf(field)]);
    const spoken = texts.map(([label, value]) => `${label} ${value} ${this.unit}`).join(", ");
    const values = {
      "aria-valuemin": 0,
      "aria-valuemax": Math.max(0, this.#points.length - 1),
      "aria-valuenow": Math.max(0, shown),
      "aria-valuetext": point ? `${clock(point.at)}: ${spoken}` : "no numbers yet",
    };
    for (const [name, value] of Object.entries(values)) this.#svg.setAttribute(name, String(value));
    this.#tip.hidden = found < 0;
    this.#marks.replaceChildren();
    if (found < 0 || !point) return;
    const x = this.#x(point.at);
    this.#marks.append(svg("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    this.series.forEach(({ field }, index) => {
      if (point[field] == null) return;
      const y = this.#y(Number(point[field]));
      this.#marks.append(svg("circle", { class: `dot series-${index}`, cx: x, cy: y, r: 4 }));
    });
    const lines = texts.map(([label, value]) =>
      el("div", {}, el("span", {}, label), el("span", {}, `${value} ${this.unit}`)),
    );
    this.#tip.replaceChildren(el("strong", {}, clock(point.at)), ...lines);
    this.#place(x);
  }

  /**
   * Places the note beside the cursor, within the plot.
   * @param {number} cursor
   */
  #place(cursor) {
    const box = this.#svg.getBoundingClientRect();
    const own = this.element.getBoundingClientRect();
    const x = box.left - own.left + cursor;
    const isRight = x > own.width / 2;
    this.#tip.style.left = isRight ? "auto" : `${x + 12}px`;
    this.#tip.style.right = isRight ? `${own.width - x + 12}px` : "auto";
    this.#tip.style.top = `${box.top - own.top + 12}px`;
  }

  #fillTable() {
    const columns = [":Time", ...this.series.map(({ label }) => `${label}, ${this.unit}`)];
    const valueOf = (/** @type {Point} */ point, /** @type {string} */ field) =>
      point[field] == null ? "–" : short(Number(point[field]));
    const rows = [...this.#points]
      .reverse()
      .map((point) => [clock(point.at), ...this.series.map(({ field }) => valueOf(point, field))]);
    const before = this.#table.firstElementChild;
    const [scroll, hadFocus] = [before?.scrollTop ?? 0, before === document.activeElement];
    const table = tableOf(`${this.title}, ${this.unit}`, columns, rows);
    this.#table.replaceChildren(table);
    table.scrollTop = scroll;
    if (hadFocus) table.focus();
  }
}
