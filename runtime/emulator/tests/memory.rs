//! Memory and handles that a program gives to the driver's functions.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod programs;

use mlxcel_cuda_emulator::client::{self, Kind, Numbers};
use programs::program;

/// What the driver says of a wrong argument, of a kernel that failed, and of memory that is registered twice or not at all.
const INVALID_VALUE: i32 = 1;
const LAUNCH_FAILED: i32 = 719;
const ALREADY_REGISTERED: i32 = 712;
const NOT_REGISTERED: i32 = 713;

#[test]
fn kernels_write_what_was_asked_for() {
    let program = program();
    let add = program.kernel("add").unwrap();
    let numbers = Numbers::new(&[1, 2, 3]).unwrap();
    add.launch(&[numbers.place() + 8, 5]).unwrap();
    assert_eq!(numbers.read().unwrap(), [1, 2, 8]);
    // What follows can be read, and not be written.
    assert_eq!(add.launch(&[numbers.place() + 12, 5]), Err(LAUNCH_FAILED));
    assert_eq!(add.launch(&[numbers.place() - 4, 5]), Err(LAUNCH_FAILED));
    let stale = numbers.place();
    drop(numbers);
    let _next = Numbers::new(&[1, 2, 3]).unwrap();
    assert_eq!(add.launch(&[stale, 5]), Err(LAUNCH_FAILED));
}

#[test]
fn copies_lie_in_an_allocation() {
    let numbers = Numbers::new(&[1, 2, 3]).unwrap();
    let mut host = [0_u32; 200];
    assert_eq!(client::copy_back(&mut host[..3], numbers.place()), Ok(()));
    assert_eq!(host[..3], [1, 2, 3]);
    // The rest of the allocation's 256 bytes, and more.
    assert_eq!(client::copy_back(&mut host[..64], numbers.place()), Ok(()));
    assert_eq!(client::copy_back(&mut host[..65], numbers.place()), Err(INVALID_VALUE));
    assert_eq!(client::copy_back(&mut host[..1], numbers.place() - 4), Err(INVALID_VALUE));
    let stale = numbers.place();
    drop(numbers);
    assert_eq!(client::copy_back(&mut host[..1], stale), Err(INVALID_VALUE));
}

#[test]
fn memory_is_taken_away_as_it_was_given() {
    for kind in [Kind::Device, Kind::Host] {
        let other = if kind == Kind::Device { Kind::Host } else { Kind::Device };
        let place = client::allocate(kind, 100).unwrap();
        assert_eq!(client::free(other, place), Err(INVALID_VALUE));
        assert_eq!(client::free(kind, place + 4), Err(INVALID_VALUE));
        assert_eq!(client::unregister(place), Err(NOT_REGISTERED));
        assert_eq!(client::free(kind, place), Ok(()));
        assert_eq!(client::free(kind, place), Err(INVALID_VALUE));
    }
    let mut numbers = [0_u32; 4];
    let place = numbers.as_ptr() as u64;
    client::register(&mut numbers).unwrap();
    assert_eq!(client::register(&mut numbers), Err(ALREADY_REGISTERED));
    assert_eq!(client::free(Kind::Host, place), Err(INVALID_VALUE));
    assert_eq!(client::unregister(place), Ok(()));
    assert_eq!(client::unregister(place), Err(NOT_REGISTERED));
}

#[test]
fn functions_have_attributes_and_parameters() {
    let program = program();
    let add = program.kernel("add").unwrap();
    // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, and one that cannot be set.
    assert_eq!(add.set_attribute(8, 163 << 10), Ok(()));
    assert_eq!(add.set_attribute(8, (163 << 10) + 1), Err(INVALID_VALUE));
    assert_eq!(add.set_attribute(0, 1), Err(INVALID_VALUE));
    assert_eq!(add.launch_without_values(), Err(INVALID_VALUE));
}
