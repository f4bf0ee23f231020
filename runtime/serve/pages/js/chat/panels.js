// @ts-check
/** The list of chats and the settings: beside the messages, or over them if there is no room. */

import { byId } from "../shared/dom.js";

const WIDE_FOR = { sidebar: matchMedia("(min-width: 48.01rem)"), settings: matchMedia("(min-width: 70.01rem)") };

/** @typedef {keyof typeof WIDE_FOR} PanelName */

/** The panel that covers the page, and what had the focus before. @type {{ name: PanelName, before: Element | null } | null} */
let covering = null;

/** @param {PanelName} name */
function isOpen(name) {
  return name === "sidebar" ? byId(name).classList.contains("is-open") : !byId(name).hidden;
}

/**
 * @param {PanelName} name
 * @param {boolean} isShown
 */
function show(name, isShown) {
  if (name === "sidebar") byId(name).classList.toggle("is-open", isShown);
  else byId(name).hidden = !isShown;
  for (const button of document.querySelectorAll(`[data-open=${name}][aria-expanded]`)) {
    button.setAttribute("aria-expanded", String(isShown));
  }
}

/** Lets only the covering panel take the focus. */
function guard() {
  byId("backdrop").hidden = !covering;
  for (const element of document.body.children) {
    if (element.matches("aside, .column, .skip")) element.toggleAttribute("inert", !!covering && element.id !== covering.name);
  }
}

/**
 * Opens a panel, and moves the focus into it.
 * @param {PanelName} name
 */
export function openPanel(name) {
  if (covering) closePanel(covering.name);
  show(name, true);
  if (!WIDE_FOR[name].matches) covering = { name, before: document.activeElement };
  guard();
  byId(name).querySelector("input:not([type=file]), textarea, button, a")?.focus();
}

/** @param {PanelName} name */
export function closePanel(name) {
  if (!isOpen(name)) return;
  const hadFocus = byId(name).contains(document.activeElement);
  const before = covering?.name === name ? covering.before : null;
  show(name, false);
  covering = null;
  guard();
  if (!hadFocus) return;
  const opener = before?.isConnected ? before : document.querySelector(`.top [data-open=${name}]`);
  /** @type {HTMLElement | null} */ (opener)?.focus();
}

/** Closes the panel that covers the page. Returns whether there was one. */
export function closeCovering() {
  if (!covering) return false;
  closePanel(covering.name);
  return true;
}

export function startPanels() {
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const opener = target.closest?.("[data-open]");
    const closer = target.closest?.("[data-close]");
    if (opener) {
      const name = /** @type {PanelName} */ (opener.getAttribute("data-open"));
      if (isOpen(name) && opener.hasAttribute("aria-expanded")) closePanel(name);
      else openPanel(name);
    }
    if (closer) closePanel(/** @type {PanelName} */ (closer.getAttribute("data-close")));
  });
  byId("backdrop").addEventListener("click", closeCovering);
  for (const media of Object.values(WIDE_FOR)) {
    media.addEventListener("change", () => {
      if (covering && WIDE_FOR[covering.name].matches) {
        covering = null;
        guard();
      } else if (!covering && media === WIDE_FOR.settings && !media.matches) {
        show("settings", false);
      }
    });
  }
}
