// @ts-check
/** Numbers as people read them. */

/** @param {number} value */
export function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

/**
 * Returns a number with three digits that matter.
 * @param {number} value
 */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return count(value);
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** @param {number} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor((whole % 86400) / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ].filter(([value]) => value);
  return parts
    .slice(0, 2)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(" ");
}

/** @param {number} value */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? value.toFixed(value < 10 ? 1 : 0) : value} ${units[unit]}`;
}

/** @param {number} unix */
export function clock(unix) {
  return new Date(unix * 1000).toLocaleTimeString("en-GB");
}
