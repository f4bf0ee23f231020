// @ts-check
/** The chat page. */

import { byId, el, isComposing, placeIcons } from "../shared/dom.js";
import { askKey } from "../shared/key-dialog.js";
import { Composer } from "./composer.js";
import { BUSY_ELSEWHERE, Conversation } from "./conversation.js";
import { Library } from "./library.js";
import { Models, factsOf, kindOf } from "./models.js";
import { closeCovering, openPanel, startPanels } from "./panels.js";
import { withRetries } from "./retry.js";
import { Runs } from "./runs.js";
import { Settings } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { TextMode } from "./text-mode.js";
import { notice, toast } from "./toasts.js";
import { Transcript } from "./transcript.js";

const library = new Library();
const models = new Models();
const runs = new Runs();
const settings = new Settings();
const textMode = new TextMode({ library, models, runs, isFree });

/** Returns whether a request can be sent; otherwise shows why not. */
function canSend() {
  const invalid = settings.firstInvalid();
  if (invalid) {
    openPanel("settings");
    invalid.focus();
  }
  return !invalid && models.chosen !== null;
}

/**
 * Returns whether what a chat says can be changed; otherwise shows why not.
 * @param {string} id
 */
function isFree(id) {
  const isHere = runs.isRunning(id);
  const isElsewhere = !isHere && library.isBusyElsewhere(id);
  if (isHere) toast("Stop the answer first.");
  if (isElsewhere) {
    library.askElsewhere(id);
    toast(BUSY_ELSEWHERE);
  }
  return !isHere && !isElsewhere;
}

const transcript = new Transcript({
  again: (message) => conversation.again(message),
  edit: (message, text) => conversation.edit(message, text),
  remove: (message) => {
    conversation.remove(message);
    composer.focus();
  },
  contextOf: (message) => models.all.find(({ id }) => id === message.model)?.context ?? 0,
});
const show = () => {
  transcript.show(library.current);
  showMode();
};
const conversation = new Conversation({
  library,
  models,
  runs,
  show,
  touch: (message, waiting) => transcript.touch(message, waiting),
  canSend,
  isFree,
});
const composer = new Composer({
  send(text) {
    if (mode() === "text") {
      if (canSend()) textMode.start();
      return false;
    }
    const isSent = conversation.send(text);
    if (isSent) transcript.scrollToEnd();
    return isSent;
  },
  stop: () => runs.stop(library.current.id),
});
let isStarted = false;
const sidebar = new Sidebar({ library, runs, begin });

function mode() {
  return models.chosen ? kindOf(models.chosen) : "chat";
}

function begin() {
  library.begin();
  focusInput();
}

function focusInput() {
  if (mode() === "text") byId("text").focus();
  else composer.focus();
}

/** Shows what the model can do: chat, or the continuation of a text. */
function showMode() {
  const found = mode();
  const { current } = library;
  document.body.classList.toggle("in-text-mode", found === "text");
  byId("transcript").hidden = found === "text";
  byId("text-mode").hidden = found !== "text";
  byId("composer").hidden = found === "embedding";
  byId("system-field").hidden = found !== "chat";
  byId("send").setAttribute("aria-label", found === "text" ? "Continue" : "Send");
  byId("send").title = found === "text" ? "Continue (Ctrl Enter)" : "Send (Enter)";
  const keys = found === "text" ? ["Ctrl Enter", " continues the text"] : ["Enter", " sends, ", "Shift Enter", " breaks the line"];
  byId("composer-hint").replaceChildren(...keys.map((text, index) => (index % 2 ? text : el("kbd", {}, text))));
  if (found === "text") textMode.show(current);
  else textMode.hide();
  welcome(found);
}

/** @param {import("./models.js").Kind} found */
function welcome(found) {
  const host = byId("welcome");
  const model = models.chosen;
  host.hidden = !model || found === "text" || library.current.messages.length > 0;
  if (host.hidden || !model) return;
  const text =
    found === "embedding"
      ? "This model makes vectors of texts, by /v1/embeddings. It cannot chat."
      : "What you write stays between this browser and this server.";
  host.replaceChildren(
    el("h2", {}, found === "embedding" ? model.id : `Chat with ${model.id}`),
    el("p", { class: "muted" }, text),
    el("dl", { class: "facts" }, ...factsOf(model)),
  );
}

function showCurrent() {
  const { current } = library;
  if (current.model && current.model !== models.chosen?.id) models.choose(current.model);
  settings.show(current);
  composer.show(current.id);
  showRunning();
  show();
  showTitle();
}

function showTitle() {
  const { current, entries } = library;
  byId("chat-title").textContent = current.title;
  document.title = `${current.title} · mlxcel`;
  // At the start the address says which chat is shown, and not the other way round.
  if (!isStarted) return;
  // An empty chat has no address.
  const isKept = entries.some(({ id }) => id === current.id);
  const wanted = isKept ? `#/${current.id}` : location.pathname;
  if (location.hash !== (isKept ? wanted : "")) history.replaceState(null, "", wanted);
}

function showRunning() {
  composer.running(runs.isRunning(library.current.id));
  textMode.running();
  sidebar.draw();
}

async function follow() {
  const id = /^#\/([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (id) {
    if (!(await library.select(id))) begin();
  } else if (!location.hash && library.entries.some((entry) => entry.id === library.current.id)) {
    // The address of an empty chat, which the browser went back to.
    begin();
  }
}

async function loadModels() {
  notice("models", null);
  try {
    await withRetries(() => models.load(), new AbortController().signal, () => {});
    const missing = models.all.length ? null : "This server serves no model.";
    notice("models", missing);
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    notice("models", `The models cannot be listed: ${message}.`, { label: "Try again", onclick: loadModels });
  }
  showCurrent();
}

function listen() {
  library.isBusy = (id) => runs.isRunning(id);
  library.addEventListener("list", () => {
    sidebar.draw();
    showTitle();
  });
  library.addEventListener("current", showCurrent);
  library.addEventListener("title", showTitle);
  library.addEventListener("removed", (event) => runs.stop(/** @type {CustomEvent} */ (event).detail));
  library.addEventListener("problem", (event) => notice("storage", /** @type {CustomEvent} */ (event).detail));
  runs.addEventListener("change", (event) => {
    library.tellBusy(/** @type {CustomEvent} */ (event).detail);
    showRunning();
  });
  settings.addEventListener("change", () => library.changed(library.current, ["settings"], { isNewer: false }));
  models.addEventListener("change", () => {
    library.current.model = models.chosen?.id ?? null;
    library.changed(library.current, ["model"], { isNewer: false });
    showMode();
  });
  addEventListener("hashchange", follow);
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    focusInput();
  });
  byId("key").addEventListener("click", async () => {
    if (await askKey("Requests are sent with this key.")) await loadModels();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || isComposing(event) || document.querySelector("dialog[open]")) return;
    if (!closeCovering()) runs.stop(library.current.id);
  });
}

placeIcons();
startPanels();
listen();
await library.open();
await follow();
isStarted = true;
showCurrent();
focusInput();
await loadModels();
focusInput();
