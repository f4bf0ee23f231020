//! Numbers of bytes for people.

use std::fmt;

/// A number of bytes, shown as `412.1 KiB (421990 bytes)`.
pub struct ByteCount(pub u64);

impl ByteCount {
    /// Formats the number without the exact count: `412.1 KiB`.
    #[must_use]
    pub fn short(bytes: u64) -> String {
        let text = Self(bytes).to_string();
        text.split(" (").next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        let Some(unit) = (0..4).rev().find(|i| self.0 >> (10 * (i + 1)) > 0) else {
            return write!(f, "{} bytes", self.0);
        };
        let value = self.0 as f64 / (1u64 << (10 * (unit + 1))) as f64;
        write!(f, "{value:.1} {} ({} bytes)", units[unit], self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_have_binary_units() {
        let counts = [0, 1023, 1024, 421_990, 2_471_628_800].map(|n| ByteCount(n).to_string());
        assert_eq!(
            counts,
            [
                "0 bytes",
                "1023 bytes",
                "1.0 KiB (1024 bytes)",
                "412.1 KiB (421990 bytes)",
                "2.3 GiB (2471628800 bytes)"
            ]
        );
    }
}
