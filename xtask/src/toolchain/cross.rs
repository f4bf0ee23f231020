//! Builds for 64-bit ARM on another CPU, with clang and Debian's libraries.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::detect::clang_path;
use crate::{shell, workspace::Workspace};

/// What cargo and rustup call 64-bit ARM.
pub(crate) const ARM: &str = "aarch64-unknown-linux-gnu";

/// rustc's argument that makes clang link for ARM.
pub(crate) const LINK_FOR_ARM: &str = "-Clink-arg=--target=aarch64-unknown-linux-gnu";

/// Installs Rust's standard library for ARM.
pub(crate) fn add_arm(workspace: &Workspace) -> Result<()> {
    let mut rustup = workspace.command("rustup");
    shell::run_to_stderr(rustup.args(["target", "add", ARM])).context("Rust for ARM is missing")
}

/// Makes a cargo command that builds for [`ARM`] find compilers. Besides, rustc needs [`LINK_FOR_ARM`].
pub(crate) fn for_arm<'a>(workspace: &Workspace, command: &'a mut Command) -> &'a mut Command {
    let clang = clang_path(workspace);
    command
        .env("CC_aarch64_unknown_linux_gnu", &clang)
        .env("CXX_aarch64_unknown_linux_gnu", clang.with_file_name("clang++"))
        .env("AR_aarch64_unknown_linux_gnu", clang.with_file_name("llvm-ar"))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", &clang)
}
