// @ts-check
/** Speaks to screen readers. What was said is not said again. */

import { byId, el } from "../shared/dom.js";

/** Lines that stay, for whoever reads back. */
const KEPT = 12;

/** @param {string} text */
export function announce(text) {
  if (!text) return;
  const host = byId("announcer");
  host.append(el("p", {}, text));
  while (host.childElementCount > KEPT) host.firstElementChild?.remove();
}
