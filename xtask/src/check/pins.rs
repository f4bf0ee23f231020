//! The pinned versions that have to agree.

use anyhow::Result;

use crate::toolchain::{iree::IREE_VERSION, wheels};

/// Returns a line for each wheel of IREE whose version is not the one that the workspace is pinned to.
pub(super) fn violations() -> Result<Vec<String>> {
    let wheels = wheels::pinned("iree")?;
    let wrong = wheels.into_iter().filter(|wheel| wheel.version != IREE_VERSION);
    let violation = |wheel: wheels::Wheel| {
        format!(
            "xtask/toolchain.toml: found {} {}, expected {IREE_VERSION}: see artifacts/src/iree.rs",
            wheel.name, wheel.version
        )
    };
    Ok(wrong.map(violation).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_compiler_is_of_the_pinned_version() {
        assert_eq!(violations().unwrap(), Vec::<String>::new());
    }
}
