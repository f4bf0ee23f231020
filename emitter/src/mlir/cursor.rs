//! A place in text in MLIR's syntax.

use crate::error::Error;

/// The characters of an error's excerpt.
const EXCERPT: usize = 40;

/// A place in a text, which moves forward as the text is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// Moves past white space.
    pub(crate) fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Returns whether `token` comes next, after white space.
    pub(crate) fn is_at(&mut self, token: &str) -> bool {
        self.skip_space();
        self.rest.starts_with(token)
    }

    /// Returns whether nothing comes next, after white space.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest.is_empty()
    }

    /// Moves past `token` if it comes next, after white space.
    pub(crate) fn take(&mut self, token: &str) -> bool {
        let found = self.is_at(token);
        if found {
            self.rest = &self.rest[token.len()..];
        }
        found
    }

    /// Moves past `token`, which must come next.
    pub(crate) fn expect(&mut self, token: &str) -> Result<(), Error> {
        if self.take(token) { Ok(()) } else { Err(self.error(&format!("'{token}'"))) }
    }

    /// Takes characters as long as they pass.
    pub(crate) fn take_while(&mut self, passes: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !passes(c)).unwrap_or(self.rest.len());
        self.split(end)
    }

    /// Takes a name: letters, digits, `_`, `.`, `$` and `-`.
    pub(crate) fn name(&mut self) -> Result<&'t str, Error> {
        self.skip_space();
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-'));
        if name.is_empty() { Err(self.error("a name")) } else { Ok(name) }
    }

    /// Takes a value's name, `%0` or `%2#1`.
    pub(crate) fn value(&mut self) -> Result<&'t str, Error> {
        self.skip_space();
        let whole = self.rest;
        self.expect("%")?;
        self.name()?;
        if self.rest.starts_with('#') {
            self.expect("#")?;
            self.name()?;
        }
        Ok(&whole[..whole.len() - self.rest.len()])
    }

    /// Takes a string with its quotes and escapes.
    pub(crate) fn quoted(&mut self) -> Result<&'t str, Error> {
        self.skip_space();
        let bytes = self.rest.as_bytes();
        if bytes.first() != Some(&b'"') {
            return Err(self.error("a string"));
        }
        let mut at = 1;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => return Ok(self.split(at + 1)),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        Err(self.error("the end of a string"))
    }

    /// Takes text up to one of `ends` that is in no bracket and no string, without white space around it.
    pub(crate) fn balanced(&mut self, ends: &[char]) -> Result<&'t str, Error> {
        self.skip_space();
        let bytes = self.rest.as_bytes();
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(&byte) = bytes.get(at) {
            if depth == 0 && ends.contains(&char::from(byte)) {
                break;
            }
            match byte {
                b'"' => at += Cursor { rest: &self.rest[at..] }.quoted()?.len() - 1,
                b'(' | b'[' | b'{' | b'<' => depth += 1,
                // An arrow closes nothing.
                b'>' if at > 0 && bytes[at - 1] == b'-' => {}
                b')' | b']' | b'}' | b'>' => {
                    depth = depth.checked_sub(1).ok_or_else(|| self.error("another bracket"))?;
                }
                _ => {}
            }
            at += 1;
        }
        if depth > 0 {
            return Err(self.error("the end of a bracket"));
        }
        Ok(self.split(at).trim_end())
    }

    /// Takes a line.
    pub(crate) fn line(&mut self) -> &'t str {
        let line = self.take_while(|c| c != '\n');
        self.take("\n");
        line
    }

    fn split(&mut self, at: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        taken
    }

    /// Says what was expected here.
    pub(crate) fn error(&self, expected: &str) -> Error {
        let found: String = self.rest.chars().take(EXCERPT).collect();
        Error::Syntax { found, expected: expected.to_owned() }
    }
}

/// Returns a string without its quotes and escapes.
pub(crate) fn unquote(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted);
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match tail {
            // MLIR escapes bytes with two hexadecimal digits.
            [high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |c: &u8| char::from(*c).to_digit(16).unwrap_or(0);
                bytes.push(u8::try_from(digit(high) * 16 + digit(low)).unwrap_or(0));
                rest = after;
            }
            [b'n', after @ ..] => {
                bytes.push(b'\n');
                rest = after;
            }
            [b't', after @ ..] => {
                bytes.push(b'\t');
                rest = after;
            }
            [other, after @ ..] => {
                bytes.push(*other);
                rest = after;
            }
            [] => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_text_ends_outside_of_brackets_and_strings() {
        let mut cursor = Cursor::new(r#" {a = "}\",", b = [1, 2]} , (i1) -> i1, x"#);
        assert_eq!(cursor.balanced(&[',']).unwrap(), r#"{a = "}\",", b = [1, 2]}"#);
        cursor.expect(",").unwrap();
        assert_eq!(cursor.balanced(&[',']).unwrap(), "(i1) -> i1");
        assert!(Cursor::new("(a").balanced(&[',']).is_err());
        assert!(Cursor::new("a)").balanced(&[',']).is_err());
        assert!(Cursor::new("\"a").balanced(&[',']).is_err());
    }

    #[test]
    fn values_have_a_name_and_perhaps_a_number() {
        let mut cursor = Cursor::new("%2#1, %arg0)");
        assert_eq!(cursor.value().unwrap(), "%2#1");
        cursor.expect(",").unwrap();
        assert_eq!(cursor.value().unwrap(), "%arg0");
        let error = cursor.value().unwrap_err().to_string();
        assert_eq!(error, "found ')', expected '%'");
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unquote(r#""a\22b\\\n\C3\A4""#), "a\"b\\\nä");
        assert_eq!(unquote("\"\""), "");
    }
}
