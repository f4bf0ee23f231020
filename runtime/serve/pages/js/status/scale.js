// @ts-check
/** Scales of plots. */

/**
 * Returns the steps of an axis from 0 to at least `max`: 1, 2 or 5 times a power of ten apart.
 * @param {number} max
 * @returns {number[]}
 */
export function ticks(max) {
  const wanted = Math.max(max, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= wanted) ?? wanted;
  const count = Math.max(1, Math.ceil(max / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}
