//! Finding functions and tensors by name.

use mlxcel_artifacts::{Manifest, entry::Entry, nearest_names};

use crate::error::{Error, ProgramError};

/// The function that is called if none is named.
const MAIN: &str = "main";

/// Finds a function of the program. Without a name, it is the only one, or `main`.
///
/// A name of several entry points, for several shapes, is that of the first; their own names tell them apart.
///
/// # Errors
/// The bundle has a model, or the program has no such function.
pub fn find_function<'m>(manifest: &'m Manifest, name: Option<&str>) -> Result<&'m Entry, Error> {
    let functions = manifest.functions()?;
    let wanted = match (name, functions) {
        (Some(name), _) => name,
        (None, [only]) => return Ok(only),
        (None, _) => MAIN,
    };
    let exact = functions.iter().find(|function| function.name == wanted);
    let found = exact.or_else(|| functions.iter().find(|function| function.function_name() == wanted));
    found.ok_or_else(|| {
        let names = functions.iter().map(|function| function.name.as_str());
        let error = match name {
            Some(found) => {
                ProgramError::NoFunction { found: found.to_owned(), expected: nearest(found, names) }
            }
            None => {
                let names: Vec<_> = names.collect();
                ProgramError::SeveralFunctions { count: functions.len(), names: names.join(", ") }
            }
        };
        error.into()
    })
}

/// Returns the known names that are most similar to one that is not known: `x, y or z`.
#[must_use]
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest_names(found, known).as_slice() {
        [] => "none".into(),
        [only] => format!("`{only}`"),
        [start @ .., last] => format!("`{}` or `{last}`", start.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use mlxcel_artifacts::{Blob, report, sample};

    use super::*;

    fn manifest(names: &[&str]) -> Manifest {
        let mut manifest = sample::program("x86_64", Blob::of(b"vmfb"));
        let named = |name: &&str| Entry { name: (*name).to_owned(), ..sample::function() };
        manifest.targets.get_mut("cpu").unwrap().entries = names.iter().map(named).collect();
        manifest
    }

    #[test]
    fn a_function_is_found_by_name_or_because_it_is_the_only_one() {
        let found = |names: &[&str], name| {
            let manifest = manifest(names);
            let found = find_function(&manifest, name);
            found.map(|entry| entry.name.clone()).map_err(|error| report(&error))
        };
        assert_eq!(found(&["step"], None).unwrap(), "step");
        assert_eq!(found(&["step", "main"], None).unwrap(), "main");
        assert_eq!(found(&["step", "main"], Some("step")).unwrap(), "step");
        assert_eq!(
            found(&["step", "init"], None).unwrap_err(),
            "error: found 2 functions, expected the name of one: step, init\nhint: name it with --function"
        );
        assert_eq!(
            found(&["step", "init"], Some("setp")).unwrap_err(),
            "error: found no function `setp`, expected `step` or `init`\n\
             hint: `mlxcel-bundle inspect BUNDLE` shows the functions"
        );
    }

    #[test]
    fn shapes_share_the_name_of_their_function() {
        let mut manifest = manifest(&["main_0", "main_1"]);
        for entry in &mut manifest.targets.get_mut("cpu").unwrap().entries {
            entry.function = Some("main".into());
        }
        assert_eq!(find_function(&manifest, None).unwrap().name, "main_0");
        assert_eq!(find_function(&manifest, Some("main_1")).unwrap().name, "main_1");
    }
}
