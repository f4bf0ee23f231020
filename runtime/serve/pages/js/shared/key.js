// @ts-check
/** The API key: kept for the tab, or for the browser if asked for. */

const NAME = "mlxcel-api-key";

/**
 * Runs `use` on a storage. A browser can forbid it.
 * @template T
 * @param {"sessionStorage" | "localStorage"} storage
 * @param {(storage: Storage) => T} use
 * @returns {T | null}
 */
function on(storage, use) {
  try {
    return use(window[storage]);
  } catch {
    return null;
  }
}

/** @type {string | null} */
let kept = null;

/** Returns the key, or an empty text. */
export function currentKey() {
  kept ??= on("sessionStorage", (s) => s.getItem(NAME)) ?? on("localStorage", (s) => s.getItem(NAME)) ?? "";
  return kept;
}

/**
 * Keeps a key.
 * @param {string} key
 * @param {boolean} isRemembered whether it outlives the tab
 */
export function keepKey(key, isRemembered) {
  kept = key;
  on("sessionStorage", (s) => (key ? s.setItem(NAME, key) : s.removeItem(NAME)));
  on("localStorage", (s) => (key && isRemembered ? s.setItem(NAME, key) : s.removeItem(NAME)));
}
