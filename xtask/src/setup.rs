//! Supplies the parts that are not found.

use anyhow::{Result, bail};

use crate::{
    apt, doctor,
    parts::{Need, PARTS, Part, Supply},
    wheels,
    workspace::Workspace,
};

/// Makes everything ready that builds and tests need. Only looks when all of it is there.
pub(crate) fn setup(workspace: &Workspace) -> Result<()> {
    setup_for(workspace, &[Need::Build, Need::Tests])
}

/// The same of what builds alone need.
pub(crate) fn setup_to_build(workspace: &Workspace) -> Result<()> {
    setup_for(workspace, &[Need::Build])
}

fn setup_for(workspace: &Workspace, needs: &[Need]) -> Result<()> {
    let is_lacking = |part: &&Part| needs.contains(&part.need) && !(part.look)(workspace).is_found();
    let lacking: Vec<&Part> = PARTS.iter().filter(is_lacking).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    // What somebody chose is not replaced behind their back; the look below says what is wrong with it.
    let wanted: Vec<&Part> =
        lacking.iter().copied().filter(|part| part.overrides(workspace).is_empty()).collect();

    let packages = packages(workspace, &wanted);
    if !packages.is_empty()
        && let Err(error) = apt::install(&packages)
    {
        if wanted.iter().any(|part| part.need == Need::Build) {
            return Err(error);
        }
        eprintln!("warning: {error:#}");
    }
    for part in wanted {
        let supplied = match part.supply {
            Supply::Wheels(name) => wheels::install(workspace, name),
            Supply::Unpacked(package) => apt::unpack(package, &workspace.toolchain.join(package)),
            Supply::Debian(_) | Supply::Cargo => Ok(()),
        };
        match supplied {
            Err(error) if part.need == Need::Tests => eprintln!("warning: {error:#}"),
            done => done?,
        }
    }
    report(workspace, &lacking)
}

/// The Debian packages of the parts, and pip's where a wheel has to be fetched.
fn packages(workspace: &Workspace, parts: &[&Part]) -> Vec<&'static str> {
    let fetches = parts.iter().any(|part| matches!(part.supply, Supply::Wheels(_)));
    let tools =
        PARTS.iter().filter(|part| fetches && part.need == Need::Setup && !(part.look)(workspace).is_found());
    let mut packages = Vec::new();
    for part in parts.iter().copied().chain(tools) {
        if let Supply::Debian(names) = part.supply {
            packages.extend(names);
        }
    }
    packages
}

/// Looks again at what was lacking.
fn report(workspace: &Workspace, parts: &[&Part]) -> Result<()> {
    let mut broken = Vec::new();
    for part in parts {
        let look = (part.look)(workspace);
        if look.is_found() {
            continue;
        }
        let text = doctor::describe(part, &look, workspace);
        if part.need == Need::Build {
            broken.push(text);
        } else {
            eprintln!("warning: {text}");
        }
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    eprintln!("set up");
    Ok(())
}
