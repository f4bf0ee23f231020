//! The documents: their size, and lines that are wrapped.

/// The largest size of a document, in bytes.
const LIMITS: [(&str, usize); 2] = [("README.md", 8 << 10), ("ARCHITECTURE.md", 25 << 10)];
const COLUMNS: usize = 100;

/// Returns a line for each violation in a Markdown file.
pub(super) fn check(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some((_, limit)) = LIMITS.iter().find(|(name, _)| *name == file)
        && text.len() > *limit
    {
        found.push(format!("{file}: found {} bytes, expected at most {limit}", text.len()));
    }
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let columns = line.chars().count();
        if columns > COLUMNS && !is_code && !is_fence && !is_unbreakable(line) {
            let number = index + 1;
            found.push(format!("{file}:{number}: found {columns} columns, expected at most {COLUMNS}"));
        }
    }
    found
}

/// Returns whether the line is a row of a table, code, a comment, or a link that cannot be broken.
fn is_unbreakable(line: &str) -> bool {
    let text = line.trim_start_matches(['-', '*', ' ', '>']);
    line.starts_with('|')
        || line.starts_with("    ")
        || line.starts_with("<!--")
        || text.starts_with('[')
        || !text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_a_size() {
        assert_eq!(check("README.md", &"a\n".repeat(4096)), [""; 0]);
        assert_eq!(
            check("README.md", &"a\n".repeat(4097)),
            ["README.md: found 8194 bytes, expected at most 8192"]
        );
        assert_eq!(check("models/README.md", &"a\n".repeat(4097)), [""; 0]);
    }

    #[test]
    fn only_text_is_wrapped() {
        let long = "word ".repeat(21);
        assert_eq!(
            check("a.md", &format!("# a\n{long}\n")),
            ["a.md:2: found 105 columns, expected at most 100"]
        );
        let rest =
            format!("| {long} |\n    {long}\n```\n{long}\n```\n[a link {long}](x)\n- {}\n", "a".repeat(120));
        assert_eq!(check("a.md", &rest), [""; 0]);
    }
}
