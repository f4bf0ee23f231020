//! Packs the weights of a new bundle by running mlxcel-pack.

use std::{
    env,
    ffi::OsStr,
    io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use mlxcel_artifacts::{Bundle, Machine, Place, Store, best_target, check_targets_at};
use mlxcel_compiler_driver::{Cancel, Event};
use rustix::process::{Pid, Signal, kill_process};

/// The packing program. It belongs to the runtime, which this program does not link.
const PROGRAM: &str = "mlxcel-pack";

/// Why the weights of a complete bundle are not packed.
pub(crate) struct PackFailure {
    pub(crate) reason: String,
    pub(crate) interrupted: bool,
    pub(crate) hint: String,
}

/// Packs the weights of `bundle` if its best target on this machine packs any.
///
/// If mlxcel-pack is not installed, leaves the bundle as it is and warns. `calibrate` is the text by which weights are rounded;
/// `hint` tells how to pack it later.
pub(crate) fn pack(
    bundle: &Bundle,
    store: Option<&Store>,
    calibrate: Option<&Path>,
    hint: &str,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Event),
) -> Result<(), PackFailure> {
    let manifest = bundle.manifest();
    let checked = check_targets_at(manifest, &Machine::host(), Place::Cpu);
    let has_work = best_target(&checked).is_some_and(|best| best.artifact().packing.is_some());
    if manifest.weights.is_empty() || !has_work {
        return Ok(());
    }
    let sibling = env::current_exe().ok().map(|program| program.with_file_name(PROGRAM));
    let program = sibling.filter(|program| program.is_file()).unwrap_or_else(|| PROGRAM.into());
    progress(Event::Weights { file: "packed weights".into() });
    let started = Command::new(&program)
        .args(["--device", "local-task"])
        .arg(bundle.path())
        // The store records what was compiled here. So mlxcel-pack accepts the unsigned bundle even if
        // MLXCEL_REQUIRE_SIGNATURE is set, and still refuses a bundle that replaced it meanwhile.
        .args(store.into_iter().flat_map(|store| [OsStr::new("--store"), store.path().as_os_str()]))
        .args(calibrate.into_iter().flat_map(|text| [OsStr::new("--calibrate"), text.as_os_str()]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let hint = format!("{hint}; until then every start packs the weights");
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let problem = format!("cannot run {}: {error}", program.display());
            progress(Event::Warning(format!("the weights are not packed: {problem}\nhint: {hint}")));
            return Ok(());
        }
    };
    let ended = match wait(&mut child, cancel) {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let interrupted = cancel.is_cancelled();
    let reason = if interrupted {
        "interrupted; the bundle is complete, its weights are not packed".into()
    } else {
        format!("error: the weights are not packed: {} ended with {ended}", program.display())
    };
    Err(PackFailure { reason, interrupted, hint })
}

/// Waits for the child. On cancellation, sends it SIGTERM, so that it removes its files and ends.
fn wait(child: &mut Child, cancel: &Cancel) -> io::Result<ExitStatus> {
    let mut terminated = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if cancel.is_cancelled() && !terminated {
            terminated = true;
            // It may have ended by itself meanwhile.
            _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        thread::sleep(Duration::from_millis(20));
    }
}
