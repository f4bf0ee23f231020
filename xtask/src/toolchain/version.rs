//! Versions in what programs print.

/// Returns the first word that reads as a version.
pub(crate) fn version_in(text: &str) -> String {
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && !word.ends_with(')')
    };
    text.split_whitespace().find(is_version).unwrap_or("an unknown version").to_owned()
}

/// Returns `3.13.0` of `3.13.0rc20261016`.
pub(crate) fn release(version: &str) -> &str {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].trim_end_matches('.')
}

/// Returns the release's numbers.
pub(crate) fn numbers(version: &str) -> Vec<u32> {
    release(version).split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        let iree = "IREE (https://iree.dev):\n  IREE compiler version 3.13.0rc20261016 @ 89ece87b\n  LLVM version 24.0.0git";
        assert_eq!(version_in(iree), "3.13.0rc20261016");
        assert_eq!(version_in("c++ (Debian 12.2.0-14+deb12u1) 12.2.0"), "12.2.0");
        assert_eq!(release("3.13.0rc20261016"), "3.13.0");
        assert_eq!(release("3.13.0.dev"), "3.13.0");
        assert_eq!(numbers("22.1.8"), [22, 1, 8]);
        assert!(numbers("4.4.4") >= vec![3, 26]);
        assert!(numbers("3.25.1") < vec![3, 26]);
        assert_eq!(numbers("an unknown version"), Vec::<u32>::new());
    }
}
