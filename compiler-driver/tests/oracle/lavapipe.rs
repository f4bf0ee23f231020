//! Vulkan in a process of its own.
//!
//! Debian 12's lavapipe (Mesa 22.3.6) loses a submission or the whole device now and then: the process then waits for
//! ever, or is told VK_ERROR_DEVICE_LOST. Neither says anything about the answers, so
//! such a process gets one more try. Wrong answers get none.

use std::{
    env, fs, io,
    process::{Command, ExitStatus, Stdio},
    sync::PoisonError,
    thread,
    time::{Duration, Instant},
};

use super::{Failure, Scope, on_vulkan};
use crate::real::{Fixture, ON_LAVAPIPE};

/// The fixture of a child process.
const FIXTURE: &str = "MLXCEL_FIXTURE_ON_VULKAN";
/// What lavapipe is given for one fixture, of which the slowest take two minutes on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(1800);
const TRIES: usize = 2;
/// What a child process says whose answers are exact, so that one which ran no test does not pass.
const EXACT: &str = "exact on Vulkan";
/// How IREE says that the device was lost: the call that lost it gives Vulkan's name, a call that waited for its
/// semaphore only the code that IREE's driver turns it into (`iree_hal_vulkan_semaphore_failure_code`).
const DEVICE_LOST: [&str; 2] = ["VK_ERROR_DEVICE_LOST", ": data loss"];

/// What became of a child process.
enum End {
    Passed,
    Failed(String),
    /// Nothing is known of its answers.
    Lost(String),
}

/// Compares the answers of one fixture on Vulkan, in a process of its own.
pub(super) fn answers(fixture: &Fixture, scope: Scope) -> Result<(), Failure> {
    // Here, so that the child finds the code in the store and other tests wait for it.
    drop(scope.built(fixture, &["vulkan"])?);
    let _alone = ON_LAVAPIPE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut losses = Vec::new();
    while losses.len() < TRIES {
        match run(&fixture.name).map_err(|error| Failure(error.to_string()))? {
            End::Passed => return Ok(()),
            End::Failed(words) => return Err(Failure(words)),
            End::Lost(words) => losses.push(words),
        }
        super::say(&format!("{}: {}", fixture.name, losses[losses.len() - 1]));
    }
    Err(Failure(losses.join("\n")))
}

fn run(fixture: &str) -> io::Result<End> {
    let words = tempfile::NamedTempFile::new()?;
    let mut child = Command::new(env::current_exe()?)
        .args(["--exact", "oracle::lavapipe::one_fixture", "--ignored", "--nocapture"])
        .env(FIXTURE, fixture)
        .stdout(Stdio::null())
        .stderr(words.reopen()?)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if start.elapsed() > LIMIT => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    Ok(end(status, &fs::read_to_string(words.path())?))
}

/// What a status, if the process ended by itself, and the words on stderr say.
fn end(status: Option<ExitStatus>, words: &str) -> End {
    let Some(status) = status else {
        return End::Lost(format!("on Vulkan: stood still for {} s\n{words}", LIMIT.as_secs()));
    };
    match status.code() {
        Some(0) if words.contains(EXACT) => End::Passed,
        Some(_) if !DEVICE_LOST.iter().any(|lost| words.contains(lost)) => {
            End::Failed(format!("on Vulkan: {words}"))
        }
        _ => End::Lost(format!("on Vulkan: {status}\n{words}")),
    }
}

#[test]
#[ignore = "a part of a fixture's comparison, which starts it"]
fn one_fixture() {
    let fixture = Fixture::find(&env::var(FIXTURE).unwrap());
    if let Err(Failure(words)) = on_vulkan(&fixture, Scope::of(&fixture)) {
        panic!("{words}");
    }
    super::say(EXACT);
}

#[test]
#[cfg(unix)]
fn only_what_says_nothing_of_answers_is_tried_again() {
    use std::os::unix::process::ExitStatusExt;
    let exited = |code: i32| Some(ExitStatus::from_raw(code << 8));
    let killed = Some(ExitStatus::from_raw(11));
    assert!(matches!(end(exited(0), EXACT), End::Passed));
    assert!(matches!(end(exited(0), ""), End::Failed(_)));
    assert!(matches!(end(exited(101), "found [1], expected [2]"), End::Failed(_)));
    assert!(matches!(end(exited(101), "VK_ERROR_DEVICE_LOST; while invoking"), End::Lost(_)));
    assert!(matches!(end(exited(101), "cannot run step_1: data loss: while invoking"), End::Lost(_)));
    assert!(matches!(end(killed, ""), End::Lost(_)));
    assert!(matches!(end(None, ""), End::Lost(_)));
}
