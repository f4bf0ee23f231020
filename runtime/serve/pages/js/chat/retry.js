// @ts-check
/** Asks again when the server is busy, and after a key was given. */

import { ApiFailure } from "../shared/api.js";
import { askKey } from "../shared/key-dialog.js";

const TRIES = 20;

/**
 * @param {number} seconds
 * @param {AbortSignal} signal
 */
function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve(undefined);
    }, seconds * 1000);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Runs `ask` until it is not refused for want of a key or of room. `onWait` gets the seconds that are left to wait, and
 * 0 at the end.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {AbortSignal} signal
 * @param {(seconds: number) => void} onWait
 * @returns {Promise<T>}
 */
export async function withRetries(ask, signal, onWait) {
  for (let tried = 1; ; tried += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      if (error.status === 401 && (await askKey(`The server refuses the request: ${error.message}.`))) continue;
      if (error.status !== 429 || tried >= TRIES) throw error;
      const seconds = Math.max(1, Math.ceil(error.retryAfter ?? tried));
      for (let left = seconds; left > 0; left -= 1) {
        onWait(left);
        await wait(1, signal);
      }
      onWait(0);
    }
  }
}
