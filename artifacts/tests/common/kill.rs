//! Kills programs at random moments.

#![allow(clippy::unwrap_used, reason = "clippy allows it in tests, but not in what tests call")]
#![allow(unreachable_pub, reason = "several test programs have it")]

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The number of runs that are killed.
const KILLS: u32 = 100;

/// Runs `command` to its end, then kills [`KILLS`] runs of it after random parts of that time.
///
/// `check` looks at the result after each run and returns whether the work was done. `before` restores the initial state.
pub fn kill_at_random(command: impl Fn() -> Command, before: impl Fn(), check: impl Fn() -> bool) {
    let mut whole = Duration::MAX;
    for _ in 0..3 {
        before();
        let start = Instant::now();
        let done = command().output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        whole = whole.min(start.elapsed());
        assert!(check(), "the command succeeded without a result");
    }
    let (mut done, mut state) = (0, 0x9E37_79B9_u32);
    for round in 0..KILLS {
        // Every second run starts with what the killed one left.
        if round % 2 == 0 {
            before();
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let after = whole.mul_f64(1.25 * f64::from(state >> 8) / f64::from(1 << 24));
        let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
        done += u32::from(check());
    }
    // Otherwise no run was killed during its work.
    assert!(done < KILLS, "every run finished before it was killed");
    before();
    assert!(command().output().unwrap().status.success());
    assert!(check());
}
