//! Copies to shared memory that run beside their thread.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod kernel;

use kernel::{module, run, text};
use mlxcel_cuda_emulator::Module;

/// Runs a kernel of 32 lanes: lane i copies 16 bytes from word 4 · i to shared memory, in groups that `body` ends and waits for, and
/// stores the first and the last word that it finds there once all have read theirs.
fn copied(body: &str) -> Result<Vec<u32>, String> {
    let module = module(&format!(
        "mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd5, %rd1, %rd4;\nmov.b64 %rd6, sums;\nadd.s64 %rd7, %rd6, %rd4;\n\
         cvt.u32.u64 %r2, %rd7;\n{body}\nld.shared.b32 %r3, [%r2];\nld.shared.b32 %r4, [%r2+12];\n\
         bar.warp.sync -1;\n\
         st.global.b32 [%rd3], %r3;\nst.global.b32 [%rd3+128], %r4;\nret;"
    ));
    let numbers: Vec<u32> = (0..128).collect();
    run(&module, 32, &numbers).map(|found| found[..64].to_vec())
}

/// What lanes find: the first and the last word of their 16 bytes.
fn words(first: impl Fn(u32) -> u32, last: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(first).chain((0..32).map(last)).collect()
}

/// Whether a place was read before its copy was waited for.
fn is_missing(found: &Result<Vec<u32>, String>) -> bool {
    found.as_ref().is_err_and(|error| {
        error.contains("is under way, expected cp.async.wait_group before it")
            && error.contains("ld.shared.b32")
    })
}

#[test]
fn bytes_arrive_when_their_group_is_waited_for() {
    let copy = "cp.async.cg.shared.global [%r2], [%rd5], 16;\n";
    let arrived = words(|lane| 4 * lane, |lane| 4 * lane + 3);
    assert_eq!(copied(&format!("{copy}cp.async.commit_group;\ncp.async.wait_group 0;")), Ok(arrived.clone()));
    assert_eq!(copied(&format!("{copy}cp.async.wait_all;")), Ok(arrived.clone()));
    assert!(is_missing(&copied(copy)));
    assert!(is_missing(&copied(&format!("{copy}cp.async.commit_group;"))));
    // Its group has not ended.
    assert!(is_missing(&copied(&format!("{copy}cp.async.wait_group 0;"))));
    // Of two groups, also empty ones, the first is waited for.
    let two = |wait: &str| format!("{copy}cp.async.commit_group;\ncp.async.commit_group;\n{wait}");
    assert_eq!(copied(&two("cp.async.wait_group 1;")), Ok(arrived.clone()));
    assert!(is_missing(&copied(&two("cp.async.wait_group 2;"))));
}

#[test]
fn each_thread_waits_for_its_own() {
    let body = |limit: u32| {
        format!(
            "setp.lt.u32 %p1, %r1, {limit};\ncp.async.cg.shared.global.L2::128B [%r2], [%rd5], 16;\n\
             cp.async.commit_group;\n@%p1 cp.async.commit_group;\ncp.async.wait_group 1;"
        )
    };
    assert!(is_missing(&copied(&body(8))));
    assert_eq!(copied(&body(32)), Ok(words(|lane| 4 * lane, |lane| 4 * lane + 3)));
}

#[test]
fn what_is_not_read_is_zero() {
    // Four bytes of even lanes, and none of odd ones, which point to no memory.
    let found = copied(
        "and.b32 %r5, %r1, 1;\nsetp.eq.b32 %p1, %r5, 1;\nselp.b32 %r6, 0, 4, %p1;\n@%p1 mov.b64 %rd5, 16;\n\
         cp.async.cg.shared.global [%r2], [%rd5], 16, %r6;\ncp.async.commit_group;\ncp.async.wait_group 0;",
    );
    assert_eq!(found, Ok(words(|lane| if lane % 2 == 0 { 4 * lane } else { 0 }, |_| 0)));
}

#[test]
fn wrong_copies_are_errors() {
    let error = |body: &str| run(&module(body), 32, &[0; 64]).unwrap_err();
    let found = error("cp.async.cg.shared.global [sums], [%rd3], 16;\nret;");
    assert!(found.ends_with("expected a multiple of 16"), "{found}");
    let found = error("mov.b64 %rd4, sums;\ncp.async.ca.shared.global [%rd4+1024], [%rd3], 4;\nret;");
    assert!(found.ends_with("of Shared memory, expected a place in an allocation"), "{found}");
    let found = error("cp.async.ca.shared.global [sums], [%rd3+256], 4;\nret;");
    assert!(found.ends_with("of Global memory, expected a place in an allocation"), "{found}");
    let found = Module::parse(&text("cp.async.cg.shared.global [sums], [%rd3], 8;\nret;")).unwrap_err();
    assert!(found.to_string().ends_with("found 8 bytes, expected one of [16]"), "{found}");
}
