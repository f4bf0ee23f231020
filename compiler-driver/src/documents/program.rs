//! The program that makes bundles, as documents name it.

/// Name, version and SHA-256 of each crate that the program is built from.
pub(super) const CRATES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/crates.rs"));

/// Version of the program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// URL of its source.
pub(super) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crates_that_are_built_are_listed() {
        let has = |name: &str| CRATES.iter().any(|(found, ..)| *found == name);
        for name in ["melior", "safetensors", "blake3", "serde", "cargo-lock", "cc", "hf-hub", "ureq"] {
            assert!(has(name), "{name}");
        }
        // Crates of tests, of other programs and of disabled features, and our own.
        for name in ["insta", "tokenizers", "oci-client", "mlxcel-emitter"] {
            assert!(!has(name), "{name}");
        }
        assert!(CRATES.iter().all(|(_, _, sha256)| sha256.len() == 64));
        assert!(CRATES.is_sorted());
    }
}
