//! Devices as the environment describes them, and their ends. Each test looks at a process with variables of its own.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod programs;

use std::{env, process::Command};

use mlxcel_cuda_emulator::client::{self, Kind, Numbers, Program};
use programs::program;

const OUT_OF_MEMORY: i32 = 2;
const DEVICE_UNAVAILABLE: i32 = 46;
const INVALID_DEVICE: i32 = 101;
const INVALID_PTX: i32 = 218;
const UNSUPPORTED_PTX: i32 = 222;
const INVALID_HANDLE: i32 = 400;
const CONTEXT_IS_DESTROYED: i32 = 709;
const LAUNCH_FAILED: i32 = 719;

/// The variable that a process has which makes the calls.
const CHILD: &str = "MLXCEL_EMULATOR_FAULTS_CHILD";

/// Runs a test in a process with these variables, which makes the calls.
fn with(test: &str, variables: &[(&str, &str)], calls: fn()) {
    if env::var_os(CHILD).is_some() {
        return calls();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test]).env(CHILD, "1").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn memory_is_that_which_other_programs_leave() {
    let variables = [("MLXCEL_EMULATED_MEMORY", "1MiB"), ("MLXCEL_EMULATED_FREE", "512KiB")];
    with("memory_is_that_which_other_programs_leave", &variables, || {
        let place = client::allocate(Kind::Device, 400 << 10).unwrap();
        assert_eq!(client::memory(), Ok([112 << 10, 1 << 20]));
        assert_eq!(client::allocate(Kind::Device, 200 << 10), Err(OUT_OF_MEMORY));
        client::allocate(Kind::Host, 2 << 20).unwrap();
        client::free(Kind::Device, place).unwrap();
        assert_eq!(client::memory(), Ok([512 << 10, 1 << 20]));
        client::allocate(Kind::Device, 512 << 10).unwrap();
    });
}

#[test]
fn devices_do_not_reach_what_others_have() {
    let variables = [("MLXCEL_EMULATED_DEVICES", "2")];
    with("devices_do_not_reach_what_others_have", &variables, || {
        let first = program();
        let numbers = Numbers::new(&[1]).unwrap();
        client::use_device(1).unwrap();
        let second = program();
        let [here, elsewhere] = [&second, &first].map(|program| program.kernel("add").unwrap());
        assert_eq!(here.launch(&[numbers.place(), 5]), Err(LAUNCH_FAILED));
        assert_eq!(elsewhere.launch(&[numbers.place(), 5]), Err(INVALID_HANDLE));
        let own = Numbers::new(&[1]).unwrap();
        here.launch(&[own.place(), 5]).unwrap();
        assert_eq!(own.read(), Ok(vec![6]));
        assert_eq!(client::use_device(2), Err(INVALID_DEVICE));
        client::use_device(0).unwrap();
        elsewhere.launch(&[numbers.place(), 5]).unwrap();
        assert_eq!(numbers.read(), Ok(vec![6]));
    });
}

#[test]
fn a_device_that_is_lost_fails_every_call() {
    let variables = [("MLXCEL_EMULATED_DEVICES", "2"), ("MLXCEL_EMULATED_LOST", "0:2")];
    with("a_device_that_is_lost_fails_every_call", &variables, || {
        let (program, numbers) = (program(), Numbers::new(&[1]).unwrap());
        let add = program.kernel("add").unwrap();
        add.launch(&[numbers.place(), 5]).unwrap();
        assert_eq!(numbers.read(), Ok(vec![6]));
        // It is whoever waits that gets the error.
        add.launch(&[numbers.place(), 5]).unwrap();
        add.launch(&[numbers.place(), 5]).unwrap();
        assert_eq!(client::synchronize(), Err(LAUNCH_FAILED));
        assert_eq!(numbers.read(), Err(LAUNCH_FAILED));
        assert_eq!(add.launch(&[numbers.place(), 5]), Err(LAUNCH_FAILED));
        assert_eq!(client::allocate(Kind::Host, 4), Err(LAUNCH_FAILED));
        assert_eq!(client::free(Kind::Device, numbers.place()), Err(LAUNCH_FAILED));
        client::use_device(1).unwrap();
        assert_eq!(Numbers::new(&[1]).unwrap().read(), Ok(vec![1]));
        assert_eq!(client::use_device(0), Err(DEVICE_UNAVAILABLE));
    });
}

#[test]
fn a_reset_takes_all_away_and_a_new_context_works() {
    let variables = [("MLXCEL_EMULATED_RESET", "0:2"), ("MLXCEL_EMULATED_MEMORY", "1MiB")];
    with("a_reset_takes_all_away_and_a_new_context_works", &variables, || {
        let (old, numbers) = (program(), Numbers::new(&[1]).unwrap());
        let add = old.kernel("add").unwrap();
        add.launch(&[numbers.place(), 5]).unwrap();
        assert_eq!(add.launch(&[numbers.place(), 5]), Err(CONTEXT_IS_DESTROYED));
        assert_eq!(client::synchronize(), Err(CONTEXT_IS_DESTROYED));
        assert_eq!(numbers.read(), Err(CONTEXT_IS_DESTROYED));
        client::use_device(0).unwrap();
        assert_eq!(client::memory(), Ok([1 << 20; 2]));
        let (new, numbers) = (program(), Numbers::new(&[1]).unwrap());
        assert_eq!(add.launch(&[numbers.place(), 5]), Err(INVALID_HANDLE));
        new.kernel("add").unwrap().launch(&[numbers.place(), 5]).unwrap();
        assert_eq!(numbers.read(), Ok(vec![6]));
    });
}

#[test]
fn the_last_use_of_a_device_takes_all_away() {
    with("the_last_use_of_a_device_takes_all_away", &[], || {
        let numbers = Numbers::new(&[1]).unwrap();
        client::use_device(0).unwrap();
        client::release_device(0).unwrap();
        assert_eq!(numbers.read(), Ok(vec![1]));
        client::release_device(0).unwrap();
        assert_eq!(numbers.read(), Err(CONTEXT_IS_DESTROYED));
        client::use_device(0).unwrap();
        client::reset_device(0).unwrap();
        assert_eq!(client::synchronize(), Err(CONTEXT_IS_DESTROYED));
        // A reset is no release: this one is that of the use before it.
        client::use_device(0).unwrap();
        client::release_device(0).unwrap();
        assert_eq!(client::synchronize(), Ok(()));
    });
}

fn load(version: &str, target: &str) -> Result<(), i32> {
    Program::load(&format!(".version {version}\n.target {target}\n.address_size 64\n")).map(drop)
}

#[test]
fn an_old_driver_does_not_know_new_ptx() {
    with("an_old_driver_does_not_know_new_ptx", &[("MLXCEL_EMULATED_DRIVER", "11050")], || {
        assert_eq!(load("7.5", "sm_80"), Ok(()));
        assert_eq!(load("7.6", "sm_80"), Err(UNSUPPORTED_PTX));
    });
}

#[test]
fn an_old_device_does_not_run_code_for_newer_ones() {
    let variables = [("MLXCEL_EMULATED_CAPABILITY", "7.5,8.0"), ("MLXCEL_EMULATED_DEVICES", "2")];
    with("an_old_device_does_not_run_code_for_newer_ones", &variables, || {
        assert_eq!((load("7.6", "sm_75"), load("7.6", "sm_80")), (Ok(()), Err(INVALID_PTX)));
        client::use_device(1).unwrap();
        assert_eq!(load("7.6", "sm_80"), Ok(()));
    });
}
