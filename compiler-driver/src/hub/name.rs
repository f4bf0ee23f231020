//! Names of repositories on the hub: `org/name`, `org/name@revision`, `org/name/file.gguf`.

use std::fmt;

/// The branch of a name without a revision.
const MAIN: &str = "main";

/// The ending of GGUF files, the only ones that a name may end with.
const GGUF_END: &str = ".gguf";

/// A repository of the hub, at a revision, and perhaps one file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubName {
    repo: String,
    revision: String,
    file: Option<String>,
}

impl HubName {
    /// Parses a name. Returns `None` for presets, and for paths such as `./org/name`, `a/b/c` or `folder/file.gguf`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (place, revision) = text.split_once('@').unwrap_or((text, MAIN));
        let mut parts = place.splitn(3, '/');
        let (owner, name) = (parts.next()?, parts.next()?);
        let file = parts.next();
        let is_file = |file: &str| has_gguf_end(file) && file.split('/').all(is_file_word);
        let is_named = is_word(owner) && is_word(name) && !has_gguf_end(name);
        (is_named && file.is_none_or(is_file) && is_revision(revision)).then(|| Self {
            repo: format!("{owner}/{name}"),
            revision: revision.to_owned(),
            file: file.map(str::to_owned),
        })
    }

    /// Returns the name at another revision, or `None` if that is no name of a branch, a tag or a commit.
    #[must_use]
    pub fn at(self, revision: &str) -> Option<Self> {
        is_revision(revision).then(|| Self { revision: revision.to_owned(), ..self })
    }

    /// Returns the repository, `org/name`.
    #[must_use]
    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// Returns the branch, tag or commit; `main` by default.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Returns the GGUF file that is named, or one part of it.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the name without the owner.
    pub(crate) fn model(&self) -> &str {
        self.repo.rsplit('/').next().unwrap_or(&self.repo)
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repo, revision, file } = self;
        write!(f, "{repo}")?;
        file.iter().try_for_each(|file| write!(f, "/{file}"))?;
        if revision == MAIN { Ok(()) } else { write!(f, "@{revision}") }
    }
}

fn has_gguf_end(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(GGUF_END)
}

/// Returns whether the hub has owners and repositories of such names.
fn is_word(word: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=96).contains(&word.len())
        && word.bytes().all(is_allowed)
        && !word.starts_with(['-', '.'])
        && !word.ends_with(['-', '.'])
        && !["--", ".."].iter().any(|pair| word.contains(pair))
}

/// Returns whether a part of a file's path in a repository is a plain name, which leads nowhere else.
pub(super) fn is_file_word(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('.')
        && !word.contains(|c: char| c.is_control() || "/\\%?#\"".contains(c))
}

/// Returns whether a revision can be a file below the folder of references.
fn is_revision(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.bytes().all(is_allowed);
    text.len() <= 200 && text.split('/').all(is_part)
}

/// Returns whether a text is the digest of a commit, as git writes it.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        let parse = |text: &str| HubName::parse(text).map(|name| (name.repo, name.revision, name.file));
        let name = |repo: &str, revision: &str, file: Option<&str>| {
            Some((repo.to_owned(), revision.to_owned(), file.map(str::to_owned)))
        };
        assert_eq!(parse("Qwen/Qwen3-0.6B"), name("Qwen/Qwen3-0.6B", "main", None));
        assert_eq!(parse("a/b@v1.0"), name("a/b", "v1.0", None));
        assert_eq!(parse("a/b@refs/pr/3"), name("a/b", "refs/pr/3", None));
        assert_eq!(parse("a/b/c-Q4_K_M.gguf"), name("a/b", "main", Some("c-Q4_K_M.gguf")));
        assert_eq!(parse("a/b/q4/c.GGUF@v2"), name("a/b", "v2", Some("q4/c.GGUF")));
        for path in [
            "gpt2",
            "./a/b",
            "/a/b",
            "../b",
            "a/..",
            "~/b",
            "a/b/",
            "a//b",
            "a/b/c",
            "a/b.gguf",
            "a/b/../c.gguf",
            "a/b/.c.gguf",
            "a/b@",
            "a/b@../x",
            "a/b@/x",
            "a/b@-x",
            "a/b@x//y",
            "a b/c",
            "a/b--c",
            "a/b\u{1b}",
            "a/-b",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn names_are_shown_as_they_are_typed() {
        for text in ["a/b", "a/b@v1", "a/b/c.gguf", "a/b/c.gguf@refs/pr/1"] {
            assert_eq!(HubName::parse(text).unwrap().to_string(), text);
        }
        let name = HubName::parse("a/b").unwrap();
        assert_eq!(name.model(), "b");
        assert_eq!(name.clone().at("v2").unwrap().to_string(), "a/b@v2");
        assert_eq!(name.at("../v2"), None);
    }
}
