//! Packs the weights of a new bundle by running mlxcel-pack.

use std::{
    env,
    ffi::OsString,
    fmt, io,
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

/// The text by which weights are rounded.
pub(crate) struct CalibrateBy<'c> {
    pub(crate) text: &'c Path,
    /// The folder of the files that keep what was collected, until packing is complete. By default they are beside the bundle.
    pub(crate) keep_in: Option<&'c Path>,
}

impl fmt::Display for CalibrateBy<'_> {
    /// Writes the options of mlxcel-pack.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--calibrate {}", self.text.display())?;
        self.keep_in.map_or(Ok(()), |folder| write!(f, " --keep-in {}", folder.display()))
    }
}

/// Packs the weights of `bundle` if its best target on this machine packs any.
///
/// If mlxcel-pack is not installed, leaves the bundle as it is and warns. `hint` tells how to pack it later.
pub(crate) fn pack(
    bundle: &Bundle,
    store: Option<&Store>,
    calibrate: Option<&CalibrateBy<'_>>,
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
        .args(arguments(bundle.path(), store.map(Store::path), calibrate))
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

/// Returns the arguments of mlxcel-pack. Paths are absolute, because one that begins with a hyphen would be an option.
fn arguments(bundle: &Path, store: Option<&Path>, calibrate: Option<&CalibrateBy<'_>>) -> Vec<OsString> {
    let absolute = |path: &Path| {
        // Fails only if there is no current folder, where no relative path leads anywhere.
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).into_os_string()
    };
    let options = [
        // The store records what was compiled here. So mlxcel-pack accepts the unsigned bundle even if
        // MLXCEL_REQUIRE_SIGNATURE is set, and still refuses a bundle that replaced it meanwhile.
        ("--store", store),
        ("--calibrate", calibrate.map(|by| by.text)),
        ("--keep-in", calibrate.and_then(|by| by.keep_in)),
    ];
    let mut arguments: Vec<OsString> = vec!["--device".into(), "local-task".into(), absolute(bundle)];
    for (option, path) in options {
        arguments.extend(path.into_iter().flat_map(|path| [option.into(), absolute(path)]));
    }
    arguments
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_taken_for_an_option() {
        let here = env::current_dir().unwrap();
        let at = |name: &str| here.join(name).into_os_string();
        let by = CalibrateBy { text: Path::new("-t"), keep_in: Some(Path::new("/k")) };
        let expected: [OsString; 9] = [
            "--device".into(),
            "local-task".into(),
            at("-b"),
            "--store".into(),
            at("-s"),
            "--calibrate".into(),
            at("-t"),
            "--keep-in".into(),
            "/k".into(),
        ];
        assert_eq!(arguments(Path::new("-b"), Some(Path::new("-s")), Some(&by)), expected);
        assert_eq!(arguments(Path::new("-b"), None, None), expected[..3]);
        assert_eq!(by.to_string(), "--calibrate -t --keep-in /k");
    }
}
