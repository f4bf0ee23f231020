//! `cargo xtask setup`: installs the parts of the toolchain that are missing.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Result, bail};

use super::{
    apt, doctor,
    part::{Need, Part, Supply},
    parts::{self, PARTS},
    venv, wheels,
};
use crate::{parallel, workspace::Workspace};

/// Set for an `xtask` that one which has set up runs: detecting the parts once more takes seconds.
pub(crate) const IS_SET_UP: &str = "MLXCEL_XTASK_IS_SET_UP";

/// Whether this process has set up. Nothing removes a part meanwhile.
static HAS_SET_UP: AtomicBool = AtomicBool::new(false);

/// Installs the missing parts that builds and tests need, once in a process.
pub(crate) fn setup(workspace: &Workspace) -> Result<()> {
    if HAS_SET_UP.load(Ordering::Relaxed) || workspace.variable(IS_SET_UP).is_some() {
        return Ok(());
    }
    setup_for(workspace, &[Need::Build, Need::Tests])?;
    HAS_SET_UP.store(true, Ordering::Relaxed);
    Ok(())
}

/// Installs the missing parts that builds need.
pub(crate) fn setup_for_build(workspace: &Workspace) -> Result<()> {
    setup_for(workspace, &[Need::Build])
}

fn setup_for(workspace: &Workspace, needs: &[Need]) -> Result<()> {
    let needed: Vec<&Part> = PARTS.iter().filter(|part| needs.contains(&part.need)).collect();
    let detections = parts::detect_all(workspace, &needed).into_iter();
    let missing: Vec<&Part> =
        detections.filter(|(_, detection)| !detection.is_found()).map(|(part, _)| part).collect();
    if missing.is_empty() {
        return Ok(());
    }
    // A part that a variable names is never replaced; `report` says what is wrong with it.
    let wanted: Vec<&Part> =
        missing.iter().copied().filter(|part| part.overrides(workspace).is_empty()).collect();

    let packages = packages(workspace, &wanted);
    if !packages.is_empty()
        && let Err(error) = apt::install(&packages)
    {
        if wanted.iter().any(|part| part.need == Need::Build) {
            return Err(error);
        }
        eprintln!("warning: {error:#}");
    }
    let supplies = distinct(&wanted);
    // One waits for the network while another unpacks.
    let supplied = parallel::map(&supplies, |part| match part.supply {
        Supply::Wheels(name) => wheels::install(workspace, name),
        Supply::Venv(name) => venv::install(workspace, name),
        Supply::Unpacked(package) => apt::unpack(package, &workspace.toolchain.join(package)),
        Supply::Debian(_) | Supply::Cargo => Ok(()),
    });
    for (part, supplied) in supplies.iter().zip(supplied) {
        match supplied {
            Err(error) if part.need == Need::Tests => eprintln!("warning: {error:#}"),
            done => done?,
        }
    }
    eprintln!("{}", report(workspace, &missing)?);
    Ok(())
}

/// Returns the parts without those that come in the same wheels as an earlier one.
fn distinct<'p>(parts: &[&'p Part]) -> Vec<&'p Part> {
    let mut found = BTreeSet::new();
    let is_new = |part: &&Part| match part.supply {
        Supply::Wheels(name) => found.insert(name),
        _ => true,
    };
    parts.iter().copied().filter(is_new).collect()
}

/// Lists the Debian packages of the parts, and pip's if something has to be fetched with them.
fn packages(workspace: &Workspace, parts: &[&Part]) -> Vec<&'static str> {
    let fetches = parts.iter().any(|part| matches!(part.supply, Supply::Wheels(_) | Supply::Venv(_)));
    let tools = PARTS
        .iter()
        .filter(|part| fetches && part.need == Need::Setup && !(part.detect)(workspace).is_found());
    let mut packages = Vec::new();
    for part in parts.iter().copied().chain(tools) {
        if let Supply::Debian(names) = part.supply {
            packages.extend(names);
        }
    }
    packages
}

/// Checks again the parts that were missing. Returns what is to be said of all.
fn report(workspace: &Workspace, parts: &[&Part]) -> Result<String> {
    let (mut broken, mut lacking) = (Vec::new(), Vec::new());
    for (part, detection) in parts::detect_all(workspace, parts) {
        if detection.is_found() {
            continue;
        }
        let text = doctor::describe(part, &detection, workspace);
        if part.need == Need::Build {
            broken.push(text);
        } else {
            eprintln!("warning: {text}");
            lacking.push(part.name);
        }
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    Ok(match lacking.as_slice() {
        [] => "setup is complete".to_owned(),
        names => format!("setup lacks {}: builds work, and tests that need it fail", names.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::part::Detection;

    fn part(need: Need, detect: fn(&Workspace) -> Detection) -> Part {
        Part { name: "minilm", expected: "one", need, supply: Supply::Cargo, variables: &[], detect }
    }

    #[test]
    fn wheels_of_several_parts_are_installed_once() {
        let cuda: Vec<&Part> =
            PARTS.iter().filter(|part| matches!(part.supply, Supply::Wheels("cuda"))).collect();
        assert_eq!(cuda.len(), 2);
        let names: Vec<&str> = distinct(&cuda).iter().map(|part| part.name).collect();
        // The build needs it, so that its failure is an error.
        assert_eq!(names, ["cuda headers"]);
    }

    #[test]
    fn setup_is_complete_only_with_all_parts() {
        let workspace = Workspace::at("/".into(), Box::new(|_| None));
        let found = |_: &Workspace| Detection::Found { version: "1".into(), path: "/x".into() };
        let missing = |_: &Workspace| Detection::Missing { path: "/x".into() };
        let report = |part: &Part| report(&workspace, &[part]).map_err(|error| error.to_string());
        assert_eq!(report(&part(Need::Tests, found)), Ok("setup is complete".into()));
        assert_eq!(
            report(&part(Need::Tests, missing)),
            Ok("setup lacks minilm: builds work, and tests that need it fail".into())
        );
        assert!(report(&part(Need::Build, missing)).unwrap_err().starts_with("minilm: found no /x, "));
    }
}
