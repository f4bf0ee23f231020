//! The subcommands.

use anyhow::Result;
use clap::Subcommand;

#[cfg(feature = "registry")]
use crate::registry::{Pull, Push};
use crate::{
    archive::{Export, Import},
    arguments::StoreArguments,
    check::{self, Check},
    copy::Copy,
    diff::Diff,
    inspect::Inspect,
    outcome::Outcome,
    sign::{Keygen, Sign},
    size::Size,
    store::{Gc, List, Remove},
    verify::Verify,
};

#[derive(Subcommand)]
pub(crate) enum Command {
    Inspect(Inspect),
    Verify(Verify),
    Check(Check),
    /// Describe this machine as JSON, for `check --machine`
    Machine,
    Export(Export),
    Import(Import),
    Copy(Copy),
    #[cfg(feature = "registry")]
    Push(Push),
    #[cfg(feature = "registry")]
    Pull(Pull),
    List(List),
    Remove(Remove),
    Gc(Gc),
    Diff(Diff),
    Size(Size),
    Keygen(Keygen),
    Sign(Sign),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(&self, store: &StoreArguments) -> Result<Outcome> {
        match self {
            Self::Inspect(inspect) => inspect.run(store),
            Self::Verify(verify) => verify.run(store),
            Self::Check(check) => check.run(store),
            Self::Machine => check::describe_machine(),
            Self::Export(export) => export.run(store),
            Self::Import(import) => import.run(store),
            Self::Copy(copy) => copy.run(store),
            #[cfg(feature = "registry")]
            Self::Push(push) => push.run(store),
            #[cfg(feature = "registry")]
            Self::Pull(pull) => pull.run(store),
            Self::List(list) => list.run(store),
            Self::Remove(remove) => remove.run(store),
            Self::Gc(gc) => gc.run(store),
            Self::Diff(diff) => diff.run(store),
            Self::Size(size) => size.run(store),
            Self::Keygen(keygen) => keygen.run(),
            Self::Sign(sign) => sign.run(store),
        }
    }

    /// Returns the exit status of this command when it fails. `diff` uses 1 for "the bundles differ".
    pub(crate) fn failure_status(&self) -> u8 {
        if matches!(self, Self::Diff(_)) { 2 } else { 1 }
    }
}
