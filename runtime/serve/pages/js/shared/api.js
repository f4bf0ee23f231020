// @ts-check
/** Asks the server that the page comes from. */

import { EventParser } from "./sse.js";
import { currentKey } from "./key.js";

/** A request that was refused, or that did not arrive. */
export class ApiFailure extends Error {
  /**
   * @param {number} status 0 if the server was not reached
   * @param {string} message
   * @param {{ code?: string | null, retryAfter?: number | null }} [more]
   */
  constructor(status, message, { code = null, retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    /** Seconds after which the server wants to be asked again. */
    this.retryAfter = retryAfter;
  }
}

/**
 * Makes a failure of an answer that is no success.
 * @param {Response} response
 */
async function failure(response) {
  const text = await response.text().catch(() => "");
  let error = null;
  try {
    error = JSON.parse(text).error;
  } catch {
    // A proxy in between answers in other forms.
  }
  const message = error?.message ?? `the server answered ${response.status} ${response.statusText}`.trim();
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfter = Number.isFinite(seconds) ? Math.max(0, seconds) : null;
  return new ApiFailure(response.status, message, { code: error?.code, retryAfter });
}

/**
 * Sends a request. Throws an ApiFailure, or an AbortError.
 * @param {string} path
 * @param {{ body?: unknown, signal?: AbortSignal }} [options]
 */
async function send(path, { body, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  const key = currentKey();
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  let response;
  try {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(path, { method, headers, body: sent, signal, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiFailure(0, "the server cannot be reached");
  }
  if (!response.ok) throw await failure(response);
  return response;
}

/**
 * Returns the JSON of an answer.
 * @param {string} path
 * @param {{ body?: unknown, signal?: AbortSignal }} [options]
 * @returns {Promise<any>}
 */
export async function askJson(path, options) {
  const response = await send(path, options);
  try {
    return await response.json();
  } catch {
    if (options?.signal?.aborted) throw new DOMException("stopped", "AbortError");
    throw new ApiFailure(0, "the server's answer is no JSON");
  }
}

/**
 * Streams the chunks of an answer. It ends with `[DONE]`; a stream that ends before broke off.
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>}
 */
export async function* stream(path, body, signal) {
  const asked = { ...body, stream: true, stream_options: { include_usage: true } };
  const response = await send(path, { body: asked, signal });
  if (!response.body) throw new ApiFailure(0, "the answer broke off");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) throw new ApiFailure(0, "the answer broke off");
      for (const { data } of parser.push(value)) {
        if (data === "[DONE]") return;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new ApiFailure(0, chunk.error.message, { code: chunk.error.code });
        yield chunk;
      }
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiFailure) throw error;
    throw new ApiFailure(0, "the answer broke off");
  } finally {
    reader.cancel().catch(() => {});
  }
}
