// @ts-check
/** Chats as files. */

import { el } from "../shared/dom.js";
import { newChat, newId } from "./library.js";

/** @typedef {import("./store.js").Chat} Chat */
/** @typedef {import("./store.js").Message} Message */

const FORMAT = "mlxcel-chats";
const VERSION = 1;

/**
 * Lets the browser save chats as a file.
 * @param {Chat[]} chats
 * @param {string} name
 */
export function saveFile(chats, name) {
  const text = JSON.stringify({ format: FORMAT, version: VERSION, chats }, null, 1);
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const safe = name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "chats";
  el("a", { href: address, download: `${safe}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** @param {unknown} value */
function text(value) {
  return typeof value === "string" ? value : "";
}

/**
 * @param {any} found
 * @returns {Message | null}
 */
function readMessage(found) {
  const role = found?.role;
  if ((role !== "user" && role !== "assistant") || typeof found.content !== "string") return null;
  /** @type {Message} */
  const message = { id: newId(), role, content: found.content };
  if (text(found.reasoning)) message.reasoning = found.reasoning;
  if (text(found.model)) message.model = found.model;
  if (text(found.finish)) message.finish = found.finish;
  if (found.isStopped === true || found.isOpen === true) message.isStopped = true;
  if (Array.isArray(found.calls)) {
    message.calls = found.calls.map((/** @type {any} */ call) => ({
      id: text(call?.id) || undefined,
      name: text(call?.name),
      arguments: text(call?.arguments),
    }));
  }
  if (found.stats && typeof found.stats === "object") {
    const number = (/** @type {string} */ name) => (Number.isFinite(found.stats[name]) ? found.stats[name] : null);
    const [firstToken, rate, generated] = [number("firstToken"), number("rate"), number("generated")];
    message.stats = { firstToken, rate, seconds: number("seconds") ?? 0, generated, prompt: number("prompt"), cached: number("cached") };
  }
  return message;
}

/**
 * Returns the chats of a file, with new ids. Throws an Error that says what is wrong with it.
 * @param {string} file
 * @returns {Chat[]}
 */
export function readFile(file) {
  let found;
  try {
    found = JSON.parse(file);
  } catch {
    throw new Error("the file is no JSON");
  }
  if (found?.format !== FORMAT || !Array.isArray(found.chats)) throw new Error("the file has no exported chats");
  if (found.version !== VERSION) throw new Error(`the file has version ${found.version}, expected ${VERSION}`);
  return found.chats.map((/** @type {any} */ one, /** @type {number} */ index) => {
    if (!one || typeof one !== "object") throw new Error(`chat ${index + 1} of the file is none`);
    const messages = (Array.isArray(one.messages) ? one.messages : []).map(readMessage);
    if (messages.includes(null)) throw new Error(`a message of chat ${index + 1} has no role or text`);
    const numbers = Object.entries(one.sampling ?? {}).filter(([, value]) => Number.isFinite(value));
    const chat = newChat();
    return {
      ...chat,
      title: text(one.title).slice(0, 200) || chat.title,
      isTitled: text(one.title) !== "",
      created: Number.isFinite(one.created) ? one.created : chat.created,
      updated: Number.isFinite(one.updated) ? one.updated : chat.updated,
      model: text(one.model) || null,
      system: text(one.system),
      sampling: Object.fromEntries(numbers),
      messages,
      text: text(one.text),
    };
  });
}
