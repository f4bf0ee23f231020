//! What a program asks of the driver, for tests of what a step of it does.

use std::{
    env,
    fmt::Display,
    fs::{File, OpenOptions},
    io::Write,
    sync::LazyLock,
};

/// The variable with the file that calls are written to.
const VARIABLE: &str = "MLXCEL_EMULATOR_COUNTS";

/// The file, if there is one.
static CALLS: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = env::var_os(VARIABLE)?;
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    opened.inspect_err(|error| eprintln!("cuda emulator: {}: {error}", path.display())).ok()
});

/// Adds a line to the file, if there is one.
pub(super) fn note(call: impl Display) {
    let Some(mut file) = CALLS.as_ref() else { return };
    // At once, so that lines of threads do not mix.
    if let Err(error) = file.write_all(format!("{call}\n").as_bytes()) {
        eprintln!("cuda emulator: {VARIABLE}: {error}");
    }
}
