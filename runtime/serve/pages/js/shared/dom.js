// @ts-check
/** Makes elements. Text is always text: nothing here parses HTML. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Sets properties: `class`, `text`, `on…` for listeners, everything else as an attribute.
 * @param {Element} element
 * @param {Record<string, unknown>} props
 */
function set(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "text") {
      element.textContent = String(value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/** @typedef {Node | string | null | undefined | false | 0} Child */

/**
 * Appends children one by one: a call takes only so many arguments.
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
function append(element, children) {
  for (const child of children.flat()) {
    if (child) element.append(child);
  }
  return element;
}

/**
 * Makes an HTML element. Children can come as lists.
 * @param {string} tag
 * @param {Record<string, unknown>} [props]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  set(element, props);
  return append(element, children);
}

/**
 * Makes an SVG element.
 * @param {string} tag
 * @param {Record<string, unknown>} [props]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, props);
  return append(element, children);
}

/**
 * Returns the element of the page with this id.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`found no element ${id}`);
  return found;
}

/**
 * Returns whether a key belongs to an input method, which writes with it. Safari ends the composition before the key that
 * confirms it, and marks that key by its code only.
 * @param {KeyboardEvent} event
 */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/** The outlines of icons, in a box of 24 by 24. */
const ICONS = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h10",
  sliders: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  edit: "M4 20h4L19 9l-4-4L4 16v4ZM13 7l4 4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 13l4 4L19 7",
  again: "M20 12a8 8 0 1 1-2.4-5.7M20 4v5h-5",
  save: "M12 4v11M7 11l5 5 5-5M4 20h16",
  open: "M12 16V5M7 9l5-5 5 5M4 20h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  down: "M12 5v14M6 13l6 6 6-6",
  key: "M14 10a4 4 0 1 1 1.5-3.1L21 12v3h-3v-2h-2l-2-3Z",
  pulse: "M3 12h4l3-8 4 16 3-8h4",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5Z",
  auto: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18ZM12 3v18M15 5v14M18 8v8",
};

/**
 * Makes an icon, which screen readers skip.
 * @param {keyof typeof ICONS} name
 */
export function icon(name) {
  const path = svg("path", { d: ICONS[name] });
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true", focusable: "false" }, path);
}

/**
 * Makes a button that shows only an icon.
 * @param {keyof typeof ICONS} name
 * @param {string} label
 * @param {(event: MouseEvent) => void} onclick
 * @param {Record<string, unknown>} [props]
 */
export function iconButton(name, label, onclick, props = {}) {
  const all = { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props };
  return el("button", all, icon(name));
}

/** Puts icons into the buttons of a page that name one in `data-icon`. */
export function placeIcons() {
  for (const button of document.querySelectorAll("[data-icon]")) {
    button.prepend(icon(/** @type {any} */ (button.getAttribute("data-icon"))));
  }
}
