//! Bundles and their names on the command line.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use mlxcel_serve::ServedModel;

/// A bundle on the command line: `BUNDLE` or `NAME=BUNDLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedBundle {
    pub(crate) name: String,
    pub(crate) bundle: PathBuf,
}

impl From<OsString> for NamedBundle {
    fn from(text: OsString) -> Self {
        let named = text.to_str().and_then(|text| text.split_once('='));
        // `./a=b` is a path.
        match named.filter(|(name, _)| !name.is_empty() && !name.contains('/')) {
            Some((name, bundle)) => Self { name: name.to_owned(), bundle: bundle.into() },
            None => Self { name: ServedModel::name_of(Path::new(&text)), bundle: text.into() },
        }
    }
}

/// Checks that every bundle has a name of its own.
pub(crate) fn check_names(bundles: &[NamedBundle]) -> Result<()> {
    let mut known: HashMap<&str, &Path> = HashMap::new();
    for NamedBundle { name, bundle } in bundles {
        if let Some(other) = known.insert(name, bundle) {
            let (other, bundle) = (other.display(), bundle.display());
            bail!(
                "the bundles {other} and {bundle} are both named {name}, expected different names\n\
                 hint: choose another name with NAME={bundle}"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> (String, String) {
        let NamedBundle { name, bundle } = OsString::from(text).into();
        (name, bundle.display().to_string())
    }

    #[test]
    fn bundles_have_names() {
        let of = |name: &str, bundle: &str| (name.to_owned(), bundle.to_owned());
        assert_eq!(named("demo"), of("demo", "demo"));
        assert_eq!(named("bundles/demo.bundle"), of("demo", "bundles/demo.bundle"));
        assert_eq!(named("fast=bundles/demo.bundle"), of("fast", "bundles/demo.bundle"));
        assert_eq!(named("fast=a=b"), of("fast", "a=b"));
        assert_eq!(named("./a=b"), of("a=b", "./a=b"));
        assert_eq!(named("=b"), of("=b", "=b"));
    }

    #[test]
    fn names_are_different() {
        let check = |texts: &[&str]| {
            let bundles: Vec<NamedBundle> = texts.iter().map(|text| OsString::from(text).into()).collect();
            check_names(&bundles).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["a/demo.bundle", "b=b/demo.bundle"]), Ok(()));
        assert_eq!(
            check(&["a/demo.bundle", "b/demo"]).unwrap_err(),
            "the bundles a/demo.bundle and b/demo are both named demo, expected different names\n\
             hint: choose another name with NAME=b/demo"
        );
    }
}
