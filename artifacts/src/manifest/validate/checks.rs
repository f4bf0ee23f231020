//! What checks of all parts of a manifest use.

use std::{collections::HashSet, fmt::Display, io, path::Path};

use crate::{
    error::Error,
    manifest::{Manifest, entry::Parameter},
    tensor::type_text,
};

/// The most bytes of a name.
pub(super) const LONGEST_NAME: usize = 255;

/// The result of a check.
pub(super) type Check = Result<(), Error>;

/// Checks a name that is shown and compared, but never used as a path.
pub(super) fn text(what: impl Display, text: &str) -> Check {
    let plain = !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(char::is_control);
    ensure(plain, || {
        let shown: String = text.chars().take(80).collect();
        format!(
            "{what} is `{}`, expected 1 to {LONGEST_NAME} bytes without control characters",
            shown.escape_debug()
        )
    })
}

/// Checks a name that may be used as a file's.
pub(super) fn file_name(what: &str, name: &str) -> Check {
    text(format_args!("name of a {what}"), name)?;
    let plain = !name.contains(['/', '\\', ':']) && name != "." && name != "..";
    ensure(plain, || format!("name of a {what} is `{name}`, expected a plain file name"))
}

impl Manifest {
    /// Returns the name by which a manifest lists the file at `path`.
    ///
    /// # Errors
    /// No valid manifest lists a file of this name.
    pub fn listed_name(path: &Path) -> Result<String, Error> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        file_name("file", &name).map_err(|_| {
            let shown = name.escape_debug();
            let problem = format!(
                "found the file name `{shown}`, expected one without `/`, `\\`, `:` and control characters\n\
                 hint: rename the file, or link to it under another name"
            );
            Error::read(path)(io::Error::other(problem))
        })?;
        Ok(name)
    }
}

pub(super) fn ensure(right: bool, problem: impl FnOnce() -> String) -> Check {
    if right { Ok(()) } else { Err(Error::Invalid(problem())) }
}

pub(super) fn check_tensors(parameters: &[Parameter]) -> Check {
    let mut names = HashSet::new();
    let mut total = 0usize;
    for parameter in parameters {
        let Parameter { name, dtype, shape, source: _, aliases } = parameter;
        text("parameter name", name)?;
        aliases.iter().try_for_each(|alias| text(format_args!("alias of parameter `{name}`"), alias))?;
        ensure(names.insert(name), || format!("parameter `{name}` is listed twice"))?;
        let found = || format!("parameter `{name}` is {}", type_text(*dtype, shape));
        ensure(!shape.contains(&0), || format!("{}: it has no elements", found()))?;
        let bytes = parameter.bytes().and_then(|bytes| total.checked_add(bytes));
        total = bytes.filter(|&t| t <= isize::MAX as usize).ok_or_else(|| {
            Error::Invalid(format!("{}: its size overflows or is not whole bytes", found()))
        })?;
    }
    Ok(())
}

/// Says in which target a problem is.
pub(super) fn within_target(name: &str, error: Error) -> Error {
    match error {
        Error::Invalid(problem) => Error::Invalid(format!("target {name}: {problem}")),
        other => other,
    }
}
