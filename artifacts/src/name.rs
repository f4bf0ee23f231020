//! Names of bundles in the store.

use std::{fmt, path::Path, str::FromStr};

/// The longest name in bytes. A name is also the name of a file, and part of a signature's: 65 bytes more, of at most 255.
const LONGEST: usize = 190;

/// The name of a bundle in the store: `demo`, `llama-3.2-1b:q4`, or where it was pulled from,
/// `registry.example/models/demo:1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of its file in the store, with a `+` for every `/`. No name has a `+`.
    pub(crate) fn file_name(&self) -> String {
        self.0.replace('/', "+")
    }

    /// Returns the name whose file is at `path`.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        path.file_name()?.to_str()?.replace('+', "/").parse().ok()
    }
}

/// A text that is not a bundle's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a bundle's name: {problem}\nhint: use a name such as demo, llama-3.2-1b:q4 or registry.example/models/demo:1",
    found.escape_debug()
)]
pub struct ParseNameError {
    found: String,
    problem: String,
}

impl FromStr for Name {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, ParseNameError> {
        let plain = |c: &char| c.is_ascii_alphanumeric() || "._-:@/".contains(*c);
        // Every part begins with a letter or digit, so no part is `..` or hidden.
        let part = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric());
        let problem = if text.len() > LONGEST {
            format!("it has {} bytes, expected at most {LONGEST}", text.len())
        } else if let Some(found) = text.chars().find(|c| !plain(c)) {
            format!("it has a {found:?}, expected letters, digits and any of . _ - : @ /")
        } else if !text.split('/').all(part) {
            "expected a letter or digit at its beginning and after every /".into()
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(ParseNameError { found: text.chars().take(LONGEST).collect(), problem })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_a_registry_reference_and_a_file_name() {
        for text in ["demo", "Llama-3.2-1B_q4", "localhost:5000/a/b:1.0", "r.example/a@sha256:0f"] {
            let name: Name = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(Name::of_file(Path::new("/s/names").join(name.file_name()).as_path()), Some(name));
        }
        let long = "a".repeat(LONGEST + 1);
        for text in ["", "/", "a/", "/a", "a//b", "..", "a/../b", ".hidden", "a b", "a+b", "ä", "a\n", &long]
        {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
        let problem = |text: &str| {
            let message = text.parse::<Name>().unwrap_err().to_string();
            message.split_once(" is not a bundle's name: ").unwrap().1.lines().next().unwrap().to_owned()
        };
        assert_eq!(problem("a\tb"), "it has a '\\t', expected letters, digits and any of . _ - : @ /");
        assert_eq!(problem("a/../b"), "expected a letter or digit at its beginning and after every /");
        assert_eq!(problem(&long), "it has 191 bytes, expected at most 190");
    }
}
