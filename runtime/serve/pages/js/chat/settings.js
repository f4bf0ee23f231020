// @ts-check
/** The system prompt and the controls of sampling. */

import { byId, el } from "../shared/dom.js";

/**
 * The controls, with the server's ranges and what it does without them.
 * @type {{ name: string, label: string, min: number, max: number, step: number, usual: string }[]}
 */
const FIELDS = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.1, usual: "1" },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.05, usual: "1" },
  { name: "top_k", label: "Top k", min: 0, max: 1e6, step: 1, usual: "0, all" },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01, usual: "0" },
  { name: "max_tokens", label: "Max tokens", min: 1, max: 1e7, step: 1, usual: "no limit" },
  { name: "seed", label: "Seed", min: -(2 ** 53 - 1), max: 2 ** 53 - 1, step: 1, usual: "random" },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: 0.1, usual: "0" },
  { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, step: 0.1, usual: "0" },
  { name: "repetition_penalty", label: "Repetition penalty", min: 0.01, max: 100, step: 0.05, usual: "1" },
];

/**
 * Says what is wrong with a value, or returns an empty text.
 * @param {(typeof FIELDS)[number]} field
 * @param {string} text
 * @param {boolean} isUnreadable whether the browser reads it as no number
 */
function fault({ min, max, step }, text, isUnreadable) {
  const value = Number(text);
  if (isUnreadable || !Number.isFinite(value)) return "Not a number";
  if (text === "") return "";
  if (step === 1 && !Number.isInteger(value)) return "A whole number";
  if (value < min) return `At least ${min}`;
  return value > max ? `At most ${max}` : "";
}

/** Shows and takes the settings of a chat. Sends `change`. */
export class Settings extends EventTarget {
  /** @type {import("./store.js").Chat | null} */
  #chat = null;
  #system = byId("system");
  /** @type {Map<string, HTMLInputElement>} */
  #inputs = new Map();

  constructor() {
    super();
    byId("sampling-fields").append(...FIELDS.map((field) => this.#field(field)));
    this.#system.addEventListener("input", () => {
      if (this.#chat) this.#chat.system = this.#system.value;
      this.#changed();
    });
    byId("reset-sampling").addEventListener("click", () => {
      if (this.#chat) this.#chat.sampling = {};
      this.#fill();
      this.#changed();
    });
    byId("settings-form").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  }

  /** @param {(typeof FIELDS)[number]} field */
  #field(field) {
    const { name, label, usual, step } = field;
    const id = `sampling-${name}`;
    const error = el("span", { class: "field-error", id: `${id}-error` });
    const input = el("input", { id, type: "number", step, placeholder: usual, "aria-describedby": error.id });
    this.#inputs.set(name, input);
    input.addEventListener("input", () => {
      const text = fault(field, input.value, input.validity.badInput);
      error.textContent = text;
      input.toggleAttribute("aria-invalid", false);
      if (text) input.setAttribute("aria-invalid", "true");
      if (this.#chat && input.value === "") delete this.#chat.sampling[name];
      else if (this.#chat && !text) this.#chat.sampling[name] = Number(input.value);
      this.#mark();
      this.#changed();
    });
    return el("div", { class: "field" }, el("label", { for: id }, label), input, error);
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
    this.#summarize();
  }

  /** @param {import("./store.js").Chat} chat */
  show(chat) {
    // What is being typed is newer than what another tab kept.
    const typed = chat === this.#chat ? document.activeElement : null;
    this.#chat = chat;
    if (typed !== this.#system) this.#system.value = chat.system;
    this.#fill(typed);
    this.#summarize();
  }

  /** @param {Element | null} [typed] the control that stays as it is */
  #fill(typed = null) {
    for (const [name, input] of this.#inputs) {
      if (input === typed) continue;
      input.value = String(this.#chat?.sampling[name] ?? "");
      input.removeAttribute("aria-invalid");
      byId(`${input.id}-error`).textContent = "";
    }
    this.#mark();
  }

  #mark() {
    for (const input of this.#inputs.values()) input.parentElement?.classList.toggle("is-set", input.value !== "");
  }

  /** Returns the first control whose value cannot be sent. */
  firstInvalid() {
    return [...this.#inputs.values()].find((input) => input.getAttribute("aria-invalid") === "true") ?? null;
  }

  /** Says beside the message what differs from the defaults. */
  #summarize() {
    const set = FIELDS.filter(({ name }) => this.#chat?.sampling[name] !== undefined);
    const texts = set.map(({ name, label }) => `${label.toLowerCase()} ${this.#chat?.sampling[name]}`);
    if (this.#chat?.system.trim()) texts.unshift("system prompt");
    const button = byId("summary");
    button.hidden = texts.length === 0;
    button.textContent = texts.length > 2 ? `${texts.length} settings` : texts.join(", ");
    button.title = texts.join(", ");
  }
}
