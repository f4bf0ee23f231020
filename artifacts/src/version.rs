//! Versions of two numbers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A version of two numbers, written `8.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.0, self.1))
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let parts =
            text.split_once('.').and_then(|(major, minor)| Some(Self(number(major)?, number(minor)?)));
        // Refuses other spellings of a version, such as `08.0`.
        parts.filter(|version| version.to_string() == text).ok_or_else(|| ParseVersionError(text.into()))
    }
}

impl TryFrom<String> for Version {
    type Error = ParseVersionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

/// The error for a text that is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a version, expected two numbers such as `8.0`", .0.escape_default())]
pub struct ParseVersionError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_one_text() {
        assert_eq!("8.0".parse(), Ok(Version(8, 0)));
        assert!(Version(8, 9) < Version(12, 0) && Version(7, 9) < Version(7, 10));
        for text in ["", "8", "8.", ".0", "8.0.1", "08.0", "8.00", "+8.0", "8.-1", "4294967296.0"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
