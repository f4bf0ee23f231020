// @ts-check
/** The status page. */

import { ApiFailure, askJson } from "../shared/api.js";
import { byId, el, placeIcons } from "../shared/dom.js";
import { clock, count, duration } from "../shared/format.js";
import { askKey } from "../shared/key-dialog.js";
import { ModelView } from "./model.js";
import { tableOf } from "./table.js";

/** Milliseconds between two looks. */
const EVERY = 3000;

const COLUMNS = [
  ":Ended",
  ":Model",
  ":Endpoint",
  "Time",
  "Queued",
  "First token",
  "Prompt",
  "Generated",
  ":Finish",
  ":Id",
];

/** @type {Map<string, ModelView>} */
const views = new Map();

/** @param {any[]} models */
function drawModels(models) {
  const host = byId("models");
  const names = new Set(models.map(({ name }) => name));
  for (const [name, view] of views) {
    if (names.has(name)) continue;
    view.element.remove();
    views.delete(name);
  }
  for (const model of models) {
    const view = views.get(model.name) ?? new ModelView(model.name);
    if (!views.has(model.name)) host.append(view.element);
    views.set(model.name, view);
    view.update(model);
  }
}

/** @param {any[]} slowest */
function drawSlowest(slowest) {
  const time = (/** @type {number | null} */ seconds) => (seconds == null ? "–" : duration(seconds));
  const rows = slowest.map((one) => [
    // The server tells when it came.
    clock(one.at + one.seconds),
    one.model,
    one.endpoint,
    time(one.seconds),
    time(one.queued_seconds),
    time(one.first_token_seconds),
    count(one.prompt_tokens ?? 0),
    count(one.generated_tokens ?? 0),
    one.finish_reason ?? "–",
    el("span", { class: "mono" }, one.id),
  ]);
  byId("slowest").hidden = false;
  const host = byId("slowest-table");
  const hadFocus = host.contains(document.activeElement);
  const scroll = host.firstElementChild?.scrollLeft ?? 0;
  const empty = el("p", { class: "empty" }, "No request has ended yet.");
  host.replaceChildren(rows.length ? tableOf("Slowest requests", COLUMNS, rows) : empty);
  host.firstElementChild.scrollLeft = scroll;
  if (hadFocus) host.firstElementChild.focus();
}

/**
 * Shows a notice above the numbers, or none.
 * @param {string} text
 * @param {string} [kind]
 * @param {() => void} [onKey]
 */
function note(text, kind = "", onKey = undefined) {
  const host = byId("notices");
  if (text && host.firstChild?.firstChild?.textContent === text) return;
  const button = onKey && el("button", { type: "button", class: "text-button", onclick: onKey }, "Enter a key");
  host.replaceChildren(...(text ? [el("div", { class: `notice ${kind}` }, el("span", {}, text), button)] : []));
}

/** Asks for the numbers once. Returns whether to go on. @returns {Promise<boolean>} */
async function look() {
  try {
    const status = await askJson("status.json");
    const facts = [`version ${status.version}`, `up for ${duration(status.uptime_seconds)}`, `as of ${clock(Date.now() / 1000)}`];
    byId("facts").textContent = facts.join(" · ");
    note(status.draining ? "The server is draining: it finishes its answers and takes no new requests." : "");
    drawModels(status.models);
    drawSlowest(status.slowest);
    return true;
  } catch (error) {
    const { status, message } = error instanceof ApiFailure ? error : new ApiFailure(0, String(error));
    if (status === 401) {
      if (await askKey(`The server refuses the request: ${message}.`)) return look();
      note("The server needs an API key.", "error", watch);
      return false;
    }
    note(`The numbers are not up to date: ${message}. Trying again.`, "error");
    return true;
  }
}

let isWatching = false;

/** Shows the numbers again and again, until the server wants a key that is not given. */
async function watch() {
  if (isWatching) return;
  isWatching = true;
  while (document.hidden || (await look())) {
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
  isWatching = false;
}

placeIcons();
watch();
