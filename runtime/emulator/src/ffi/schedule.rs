//! How launches are run, as the environment says.

use std::{
    env,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::machine::{Order, Schedule};

/// The variable with the order of all launches: `forward`, `reverse`, or a number that stands for one.
const ORDER: &str = "MLXCEL_EMULATED_ORDER";
/// The variable that is `off` where races are not looked for.
const RACES: &str = "MLXCEL_EMULATED_RACES";

static GIVEN: LazyLock<Option<Order>> = LazyLock::new(|| {
    let text = env::var(ORDER).ok()?;
    text.parse().inspect_err(|error| eprintln!("cuda emulator: {ORDER}: {error}")).ok()
});
static FINDS_RACES: LazyLock<bool> = LazyLock::new(|| env::var(RACES).as_deref() != Ok("off"));
/// The launches until now.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Returns how the next launch is run. Without a given order, each has one of its own, and a program has the same ones every time.
pub(super) fn next() -> Schedule {
    let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let order = GIVEN.unwrap_or(Order::Seed(launch));
    Schedule { order, finds_races: *FINDS_RACES, ..Schedule::default() }
}

/// Says how a launch that failed can be run again.
pub(super) fn tell(schedule: &Schedule) {
    if let Order::Seed(seed) = schedule.order {
        eprintln!("hint: {ORDER}={seed} gives all launches the order of this one");
    }
}
