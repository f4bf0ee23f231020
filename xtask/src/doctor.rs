//! Says what is there and what is not.

use anyhow::{Result, bail};

use crate::{
    parts::{Look, Need, PARTS, Part, Supply},
    shell,
    workspace::Workspace,
};

/// Prints every part. An error if the build cannot work.
pub(crate) fn doctor(workspace: &Workspace) -> Result<()> {
    let looks: Vec<(&Part, Look)> = PARTS.iter().map(|part| (part, (part.look)(workspace))).collect();
    let is_supplied = |(part, look): &(&Part, Look)| {
        look.is_found() || !matches!(part.supply, Supply::Wheels(_) | Supply::Unpacked(_))
    };
    let fetches = !looks.iter().all(is_supplied);
    let is_broken = |part: &Part, look: &Look| match part.need {
        Need::Build => !look.is_found(),
        Need::Tests | Need::Setup => false,
    };

    let rows: Vec<Vec<String>> = looks.iter().map(|(part, look)| row(part, look)).collect();
    shell::print(&shell::table(&rows))?;
    for (part, look) in &looks {
        let matters = part.need != Need::Setup || fetches;
        if !look.is_found() && matters {
            shell::print(&format!("\n{}\n", describe(part, look, workspace)))?;
        }
    }
    let broken: Vec<&str> =
        looks.iter().filter(|(part, look)| is_broken(part, look)).map(|(part, _)| part.name).collect();
    if !broken.is_empty() {
        bail!("the build cannot work without {}", broken.join(", "));
    }
    Ok(())
}

fn row(part: &Part, look: &Look) -> Vec<String> {
    let (state, version, path) = match look {
        Look::Found { version, path } => ("found", version.as_str(), path),
        Look::Wrong { found, path } => ("wrong version", found.as_str(), path),
        Look::Missing { path } => ("missing", "", path),
    };
    [part.name, state, version, &path.display().to_string()].map(str::to_owned).to_vec()
}

/// What is wrong with a part, and what to do.
pub(crate) fn describe(part: &Part, look: &Look, workspace: &Workspace) -> String {
    let found = match look {
        Look::Found { version, path } => format!("found {version} at {}", path.display()),
        Look::Wrong { found, path } => format!("found {found} at {}", path.display()),
        Look::Missing { path } => format!("found no {}", path.display()),
    };
    let remedy = match (part.overrides(workspace).as_slice(), &part.supply) {
        ([], Supply::Debian(packages)) => {
            format!("cargo xtask setup, which installs {}", packages.join(" "))
        }
        ([], Supply::Wheels(_) | Supply::Unpacked(_)) => "cargo xtask setup".to_owned(),
        ([], Supply::Cargo) => "it comes with mlxcel-runtime's dependencies: cargo fetch".to_owned(),
        (variables, _) => format!("change or unset {}", variables.join(" and ")),
    };
    let names: Vec<&str> = part.variables.iter().map(|variable| variable.name).collect();
    let instead = match (look, names.as_slice()) {
        (Look::Found { .. }, _) | (_, []) => String::new(),
        (_, names) if part.overrides(workspace).is_empty() => format!("; or set {}", names.join(", ")),
        _ => String::new(),
    };
    format!("{}: {found}, expected {}\nhint: {remedy}{instead}", part.name, part.expected)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn iree_compile() -> &'static Part {
        PARTS.iter().find(|part| part.name == "iree-compile").unwrap()
    }

    #[test]
    fn a_missing_part_comes_with_both_ways_out() {
        let workspace = Workspace::at("/".into(), Box::new(|_| None));
        let look = Look::Missing { path: "/x/iree-compile".into() };
        assert_eq!(
            describe(iree_compile(), &look, &workspace),
            "iree-compile: found no /x/iree-compile, expected iree-compile 3.13.0\n\
             hint: cargo xtask setup; or set MLXCEL_IREE_COMPILE"
        );
    }

    #[test]
    fn what_a_variable_names_is_not_put_right_by_setup() {
        let lookup =
            |name: &str| (name == "MLXCEL_IREE_COMPILE").then(|| OsString::from("/old/iree-compile"));
        let workspace = Workspace::at("/".into(), Box::new(lookup));
        let look = Look::Wrong { found: "3.12.0".into(), path: "/old/iree-compile".into() };
        assert_eq!(
            describe(iree_compile(), &look, &workspace),
            "iree-compile: found 3.12.0 at /old/iree-compile, expected iree-compile 3.13.0\n\
             hint: change or unset MLXCEL_IREE_COMPILE"
        );
    }
}
