// @ts-check
/** Asks for an answer, and collects it. */

import { ApiFailure, askJson, stream } from "../shared/api.js";

/** @typedef {import("./store.js").Chat} Chat */
/** @typedef {import("./store.js").Message} Message */
/** @typedef {import("./store.js").Stats} Stats */

/** The tokens of a continuation, unless a limit is set. */
const CONTINUATION = 160;

/**
 * Returns the messages as the server reads them. Answers that failed before their first word are left out, and questions
 * that follow one another are one: many chat templates want users and assistants to take turns.
 * @param {Chat} chat
 * @param {Message[]} messages
 */
function wireMessages(chat, messages) {
  const system = chat.system.trim() ? [{ role: "system", content: chat.system }] : [];
  const said = messages.filter(({ role, content, calls }) => role === "user" || content || calls?.length);
  /** @type {{ role: string, content: string | null, tool_calls?: unknown[] }[]} */
  const sent = [];
  for (const { role, content, calls } of said) {
    const before = sent.at(-1);
    if (role === "user" && before?.role === "user") {
      before.content = `${before.content}\n\n${content}`;
      continue;
    }
    const named = calls?.map(({ id, name, arguments: text }, index) => ({
      id: id ?? `call${index}`,
      type: "function",
      function: { name, arguments: text },
    }));
    sent.push(named?.length ? { role, content: content || null, tool_calls: named } : { role, content });
  }
  return [...system, ...sent];
}

/** Measures an answer by the times at which its parts come. */
class Watch {
  #start = performance.now();
  #first = 0;
  #last = 0;
  #parts = 0;
  /** @type {any} */
  usage = null;

  /** Notes that a part has come. */
  part() {
    this.#last = performance.now();
    this.#first ||= this.#last;
    this.#parts += 1;
  }

  /** @returns {Stats} */
  stats() {
    const generated = this.usage?.completion_tokens ?? null;
    // The first token comes with the prompt. An answer that was stopped has no count: its parts are one for each token.
    const tokens = (generated ?? this.#parts) - 1;
    const seconds = (this.#last - this.#first) / 1000;
    return {
      firstToken: this.#first ? (this.#first - this.#start) / 1000 : null,
      rate: tokens > 0 && seconds > 0 ? tokens / seconds : null,
      seconds: this.#last ? (this.#last - this.#start) / 1000 : 0,
      generated,
      prompt: this.usage?.prompt_tokens ?? null,
      cached: this.usage?.prompt_tokens_details?.cached_tokens ?? null,
    };
  }
}

/**
 * Adds what is new to a message. Returns whether there was something.
 * @param {Message} message
 * @param {any} delta
 */
function add(message, delta) {
  const { content, reasoning_content: reasoning, tool_calls: calls } = delta ?? {};
  if (content) message.content += content;
  if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
  for (const { index, id, function: part } of calls ?? []) {
    message.calls ??= [];
    message.calls[index] ??= { name: "", arguments: "" };
    const call = message.calls[index];
    if (id) call.id = id;
    call.name += part?.name ?? "";
    call.arguments += part?.arguments ?? "";
  }
  return !!(content || reasoning || calls?.length);
}

/**
 * Writes the answer to a chat into `message`, the last one. Throws what the server refuses.
 * @param {{ chat: Chat, model: string, message: Message, signal: AbortSignal, onPart: () => void }} asked
 */
export async function answer({ chat, model, message, signal, onPart }) {
  const before = chat.messages.slice(0, chat.messages.indexOf(message));
  const body = { model, messages: wireMessages(chat, before), ...chat.sampling };
  const watch = new Watch();
  try {
    for await (const chunk of stream("v1/chat/completions", body, signal)) {
      if (chunk.usage) watch.usage = chunk.usage;
      const choice = chunk.choices[0];
      if (choice?.finish_reason) message.finish = choice.finish_reason;
      if (choice && add(message, choice.delta)) {
        watch.part();
        onPart();
      }
    }
  } finally {
    message.stats = watch.stats();
  }
}

/**
 * Returns how many tokens a continuation may have, at most what the context has room for.
 * @param {string} text
 * @param {{ id: string, context?: number }} model
 * @param {AbortSignal} signal
 */
async function room(text, { id, context }, signal) {
  if (!context) return CONTINUATION;
  const { tokens } = await askJson("tokenize", { body: { model: id, content: text, add_special: true }, signal });
  if (tokens.length >= context) {
    throw new ApiFailure(400, `the text has ${tokens.length} tokens, and the context ${context}: shorten the text`);
  }
  return Math.min(CONTINUATION, context - tokens.length);
}

/**
 * Continues the text of a chat. Calls `onText` with what is new.
 * @param {{
 *   chat: Chat, model: { id: string, context?: number }, signal: AbortSignal, onText: (text: string) => void
 * }} asked
 * @returns {Promise<{ finish: string, stats: Stats }>}
 */
export async function continuation({ chat, model, signal, onText }) {
  const limit = chat.sampling.max_tokens ?? (await room(chat.text, model, signal));
  const body = { model: model.id, prompt: chat.text, ...chat.sampling, max_tokens: limit };
  const watch = new Watch();
  let finish = "";
  for await (const chunk of stream("v1/completions", body, signal)) {
    if (chunk.usage) watch.usage = chunk.usage;
    const choice = chunk.choices[0];
    finish = choice?.finish_reason ?? finish;
    if (!choice?.text) continue;
    watch.part();
    onText(choice.text);
  }
  return { finish, stats: watch.stats() };
}
