// @ts-check
/** The bundles that are served, and which of them answers. */

import { askJson } from "../shared/api.js";
import { byId, el, iconButton } from "../shared/dom.js";
import { count } from "../shared/format.js";

/**
 * @typedef {{
 *   id: string, digest?: string, context?: number, target?: string, device?: string, quantization?: string,
 *   signature?: { key: string, verified: boolean } | null, task?: string, chat_template?: boolean
 * }} Model
 * @typedef {"chat" | "text" | "embedding"} Kind
 */

/**
 * Returns what can be done with a model.
 * @param {Model} model
 * @returns {Kind}
 */
export function kindOf(model) {
  if (model.task === "embedding") return "embedding";
  return model.chat_template === false ? "text" : "chat";
}

/** Sends `change` when another model is chosen. */
export class Models extends EventTarget {
  /** @type {Model[]} */
  all = [];
  /** @type {Model | null} */
  chosen = null;
  #select = byId("model");

  constructor() {
    super();
    this.#select.addEventListener("change", () => {
      this.choose(this.#select.value);
      this.dispatchEvent(new Event("change"));
    });
  }

  async load() {
    const { data } = await askJson("v1/models");
    this.all = data;
    const options = this.all.map((model) => {
      const suffix = { chat: "", text: " (text)", embedding: " (embeddings)" }[kindOf(model)];
      return el("option", { value: model.id }, model.id + suffix);
    });
    this.#select.replaceChildren(...options);
    this.choose(this.chosen?.id ?? null);
  }

  /**
   * Chooses a model, or the first one that can answer.
   * @param {string | null} id
   */
  choose(id) {
    const able = this.all.find((model) => kindOf(model) !== "embedding") ?? this.all[0];
    this.chosen = this.all.find((model) => model.id === id) ?? able ?? null;
    if (this.chosen) this.#select.value = this.chosen.id;
    byId("bundle").replaceChildren(...(this.chosen ? factsOf(this.chosen) : []));
  }
}

/** @param {Model} model */
function signatureOf({ signature }) {
  if (!signature) return "none";
  return `${signature.verified ? "verified" : "not verified"}, key ${signature.key}`;
}

/**
 * Returns the facts of a bundle, as terms and descriptions.
 * @param {Model} model
 * @returns {HTMLElement[]}
 */
export function factsOf(model) {
  const tasks = { chat: "chat", text: "text completion, no chat template", embedding: "embeddings" };
  /** @type {[string, import("../shared/dom.js").Child][]} */
  const facts = [
    ["Name", model.id],
    ["Use", tasks[kindOf(model)]],
    ["Digest", model.digest && digestOf(model.digest)],
    ["Signature", model.signature === undefined ? null : signatureOf(model)],
    ["Target", model.target],
    ["Device", model.device],
    ["Weights", model.quantization],
    ["Context", model.context && `${count(model.context)} tokens`],
  ];
  return facts.flatMap(([term, value]) => (value ? [el("dt", {}, term), el("dd", {}, value)] : []));
}

/** @param {string} digest */
function digestOf(digest) {
  const [kind, hex] = digest.includes(":") ? digest.split(":", 2) : ["", digest];
  const text = `${kind}${kind && ":"}${hex.slice(0, 16)}…`;
  const button = iconButton("copy", "Copy the digest", () => navigator.clipboard?.writeText(digest), { class: "icon-button small" });
  return el("span", { class: "mono", title: digest }, text, navigator.clipboard && button);
}
