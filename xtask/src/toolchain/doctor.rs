//! `cargo xtask doctor`: lists the parts of the toolchain and the remedies for missing ones.

use anyhow::{Result, bail};

use super::{
    part::{Detection, Need, Part, Supply},
    parts::{self, PARTS},
};
use crate::{shell, workspace::Workspace};

/// Prints every part. Fails if one that the build needs is missing.
pub(crate) fn doctor(workspace: &Workspace) -> Result<()> {
    let detections = parts::detect_all(workspace, &PARTS.iter().collect::<Vec<_>>());
    let is_supplied = |(part, detection): &(&Part, Detection)| {
        detection.is_found()
            || !matches!(part.supply, Supply::Wheels(_) | Supply::Venv(_) | Supply::Unpacked(_))
    };
    let fetches = !detections.iter().all(is_supplied);
    let is_broken = |part: &Part, detection: &Detection| match part.need {
        Need::Build => !detection.is_found(),
        Need::Tests | Need::Setup => false,
    };

    let rows: Vec<Vec<String>> = detections.iter().map(|(part, detection)| row(part, detection)).collect();
    shell::print(&shell::table(&rows))?;
    for (part, detection) in &detections {
        let matters = part.need != Need::Setup || fetches;
        if !detection.is_found() && matters {
            shell::print(&format!("\n{}\n", describe(part, detection, workspace)))?;
        }
    }
    let broken: Vec<&str> = detections
        .iter()
        .filter(|(part, detection)| is_broken(part, detection))
        .map(|(part, _)| part.name)
        .collect();
    if !broken.is_empty() {
        bail!("the build needs {}", broken.join(", "));
    }
    Ok(())
}

fn row(part: &Part, detection: &Detection) -> Vec<String> {
    let (state, version, path) = match detection {
        Detection::Found { version, path } => ("found", version.as_str(), path),
        Detection::WrongVersion { found, path } => ("wrong version", found.as_str(), path),
        Detection::Missing { path } => ("missing", "", path),
    };
    [part.name, state, version, &path.display().to_string()].map(str::to_owned).to_vec()
}

/// Describes what was found of a part and how to repair it.
pub(crate) fn describe(part: &Part, detection: &Detection, workspace: &Workspace) -> String {
    let found = match detection {
        Detection::Found { version, path } => format!("found {version} at {}", path.display()),
        Detection::WrongVersion { found, path } => format!("found {found} at {}", path.display()),
        Detection::Missing { path } => format!("found no {}", path.display()),
    };
    let remedy = match (part.overrides(workspace).as_slice(), &part.supply) {
        ([], Supply::Debian(packages)) => {
            format!("cargo xtask setup, which installs {}", packages.join(" "))
        }
        ([], Supply::Wheels(_) | Supply::Venv(_) | Supply::Unpacked(_)) => "cargo xtask setup".to_owned(),
        ([], Supply::Cargo) => "cargo fetch, which downloads mlxcel-runtime's dependencies".to_owned(),
        (variables, _) => format!("change or unset {}", variables.join(" and ")),
    };
    let names: Vec<&str> = part.variables.iter().map(|variable| variable.name).collect();
    let instead = match (detection, names.as_slice()) {
        (Detection::Found { .. }, _) | (_, []) => String::new(),
        (_, names) if part.overrides(workspace).is_empty() => format!("; or set {}", names.join(", ")),
        _ => String::new(),
    };
    format!("{}: {found}, expected {}\nhint: {remedy}{instead}", part.name, part.expected())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn iree_compile() -> &'static Part {
        PARTS.iter().find(|part| part.name == "iree-compile").unwrap()
    }

    #[test]
    fn a_missing_part_has_both_remedies() {
        let workspace = Workspace::at("/".into(), Box::new(|_| None));
        let detection = Detection::Missing { path: "/x/iree-compile".into() };
        assert_eq!(
            describe(iree_compile(), &detection, &workspace),
            "iree-compile: found no /x/iree-compile, expected iree-compile 3.13.0\n\
             hint: cargo xtask setup; or set MLXCEL_IREE_COMPILE"
        );
    }

    #[test]
    fn a_part_named_by_a_variable_is_not_replaced_by_setup() {
        let lookup =
            |name: &str| (name == "MLXCEL_IREE_COMPILE").then(|| OsString::from("/old/iree-compile"));
        let workspace = Workspace::at("/".into(), Box::new(lookup));
        let detection = Detection::WrongVersion { found: "3.12.0".into(), path: "/old/iree-compile".into() };
        assert_eq!(
            describe(iree_compile(), &detection, &workspace),
            "iree-compile: found 3.12.0 at /old/iree-compile, expected iree-compile 3.13.0\n\
             hint: change or unset MLXCEL_IREE_COMPILE"
        );
    }
}
