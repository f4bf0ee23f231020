//! Modules in which no op has a place.
//!
//! iree-compile 3.13 gives each op the device as its place. Its analysis of places stops at the arguments of a loop's turn, so that
//! each turn copies what the loop carries to where it is already: a `jax.lax.scan` of 4096 steps that stacks rows of 4 KB copies
//! 64 GB. So it is run in two parts, and between them the place is removed. Later, when loops are compiled, it gives dispatches
//! the device all the same.

/// The flags of the first part, which ends where ops have got their place. Locations are kept for what the second says of ops.
pub(super) const FIRST_PHASES: [&str; 2] = ["--compile-to=preprocessing", "--mlir-print-debuginfo"];

/// The flag of the second part.
pub(super) const OTHER_PHASES: &str = "--compile-from=preprocessing";

/// The attribute of a module that is the place of its ops.
const PLACE: &str = "stream.affinity.default = #hal.device.affinity<@__device_0>";

/// Returns a module without the place of its ops.
pub(super) fn removed(mlir: &str) -> String {
    let (before, after) = mlir.split_once(PLACE).unwrap_or((mlir, ""));
    // One of several attributes, or the only one.
    let before = before.strip_suffix(", ").unwrap_or(before);
    let after = if before.ends_with('{') { after.strip_prefix(", ").unwrap_or(after) } else { after };
    format!("{before}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_removed_and_nothing_else() {
        let module = |attributes: &str| format!("module @m attributes {{{attributes}}} {{\n  x\n}}\n");
        assert_eq!(removed(&module(PLACE)), module(""));
        assert_eq!(removed(&module(&format!("a = 1, {PLACE}"))), module("a = 1"));
        assert_eq!(removed(&module(&format!("{PLACE}, z = 1"))), module("z = 1"));
        assert_eq!(removed(&module(&format!("a = 1, {PLACE}, z = 1"))), module("a = 1, z = 1"));
        assert_eq!(removed(&module("a = 1")), module("a = 1"));
    }
}
