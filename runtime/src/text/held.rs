//! Text whose end may begin a marker, such as a stop text.

/// Text that was not taken yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldText(String);

impl HeldText {
    /// Adds text at the end.
    pub fn push(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// Takes the text before the first of the markers, and that marker, whose index is returned.
    ///
    /// Without any, takes the text that can be no part of a marker, whatever comes. Empty markers are found nowhere.
    pub fn take_until<M: AsRef<str>>(&mut self, markers: &[M]) -> (String, Option<usize>) {
        let markers =
            || markers.iter().map(AsRef::as_ref).enumerate().filter(|(_, marker)| !marker.is_empty());
        let found = markers().filter_map(|(index, marker)| Some((self.0.find(marker)?, index, marker.len())));
        // Of markers at one place the longest counts.
        let first = found.min_by_key(|&(start, _, length)| (start, std::cmp::Reverse(length)));
        if let Some((start, index, length)) = first {
            let text = self.0.drain(..start).collect();
            self.0.drain(..length);
            return (text, Some(index));
        }
        let starts = self.0.char_indices().map(|(start, _)| start);
        let mut undecided =
            starts.filter(|&start| markers().any(|(_, marker)| marker.starts_with(&self.0[start..])));
        let end = undecided.next().unwrap_or(self.0.len());
        (self.0.drain(..end).collect(), None)
    }

    /// Takes all text.
    pub fn take_all(&mut self) -> String {
        std::mem::take(&mut self.0)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the first `length` bytes, which must end at the end of a character; all if there are not as many.
    pub fn take(&mut self, length: usize) -> String {
        let length = length.min(self.0.len());
        self.0.drain(..length).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_across_pieces() {
        let mut held = HeldText::default();
        let mut push = |piece: &str| {
            held.push(piece);
            held.take_until(&["<a>", "<ab", ""])
        };
        assert_eq!(push("x<"), ("x".into(), None));
        assert_eq!(push("ü<a"), ("<ü".into(), None));
        assert_eq!(push("bc<a>"), (String::new(), Some(1)));
        assert_eq!(push(""), ("c".into(), Some(0)));
        assert_eq!(push("<a"), (String::new(), None));
        assert_eq!(held.take_all(), "<a");
    }
}
