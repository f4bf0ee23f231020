//! What a GPU would not forgive: each kernel breaks one rule, and the error says which.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod kernel;

use kernel::{launch, module, run_by, text};
use mlxcel_cuda_emulator::{Dimensions, Module, Order, Schedule};

/// The orders in which each kernel is run. A rule holds in every one.
const ORDERS: [Order; 5] = [Order::Forward, Order::Reverse, Order::Seed(1), Order::Seed(2), Order::Seed(3)];

/// A kernel, and what its error has.
type Row = (&'static str, &'static str);

/// Runs kernels with some blocks of some threads on numbers that have room for a word of each thread.
fn check(blocks: u32, threads: u32, rows: &[Row]) {
    for (body, expected) in rows {
        for order in ORDERS {
            let schedule = Schedule { order, budget: 100_000, ..Schedule::default() };
            let mut numbers = vec![0; 1024];
            let grid = (Dimensions([blocks, 1, 1]), Dimensions([threads, 1, 1]));
            let found = run_by(&module(body), grid, &mut numbers, schedule);
            let error = found.expect_err(body);
            assert!(error.contains(expected), "{body} {order:?}\nfound {error}\nexpected {expected}");
        }
    }
}

/// Checks kernels that are not loaded.
fn check_loads(rows: &[Row]) {
    for (body, expected) in rows {
        let error = Module::parse(&text(body)).expect_err(body).to_string();
        assert!(error.contains(expected), "{body}\nfound {error}\nexpected {expected}");
    }
}

/// The thread's word of shared memory is at `%rd5`, and that of the thread 63 - tid at `%rd7`.
macro_rules! shared {
    ($body:literal) => {
        concat!(
            "mov.b64 %rd4, sums;\nadd.s64 %rd5, %rd4, %rd2;\nsub.s32 %r3, 63, %r1;\n",
            "mul.wide.u32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd4, %rd6;\n",
            $body,
            "\nret;"
        )
    };
}

#[test]
fn warps_race_in_shared_memory() {
    check(
        1,
        64,
        &[
            // No barrier, in both directions; a barrier of the warp is not one of the block.
            (
                shared!("st.shared.b32 [%rd5], %r1;\nld.shared.b32 %r4, [%rd7];"),
                "expected a barrier between both",
            ),
            (
                shared!("ld.shared.b32 %r4, [%rd7];\nst.shared.b32 [%rd5], %r1;"),
                "expected a barrier between both",
            ),
            (
                shared!("st.shared.b32 [%rd5], %r1;\nbar.warp.sync -1;\nld.shared.b32 %r4, [%rd7];"),
                "expected a barrier between both",
            ),
            // What is read is written again too early.
            (
                shared!(
                    "st.shared.b32 [%rd5], %r1;\nbar.sync 0;\nld.shared.b32 %r4, [%rd7];\nst.shared.b32 [%rd5], %r4;"
                ),
                "expected a barrier between both",
            ),
            (shared!("st.shared.b32 [sums], %r1;"), "which thread"),
            // An atomic operation and a plain one.
            (
                shared!("atom.shared.add.u32 %r4, [sums], 1;\nst.shared.b32 [sums], %r1;"),
                "expected a barrier",
            ),
            // Bytes of a word.
            (shared!("cvt.u16.u32 %rs1, %r1;\nst.shared.b8 [sums+1], %rs1;"), "expected a barrier"),
        ],
    );
}

#[test]
fn lanes_race() {
    let neighbor = "xor.b32 %r3, %r1, 1;\nmul.wide.u32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd1, %rd6;\n";
    let body = |between: &str| {
        format!("{neighbor}st.global.b32 [%rd3], %r1;\n{between}\nld.global.b32 %r4, [%rd7];\nret;")
    };
    for order in ORDERS {
        let schedule = Schedule { order, ..Schedule::default() };
        let grid = (Dimensions([1, 1, 1]), Dimensions([32, 1, 1]));
        let found = |between: &str| run_by(&module(&body(between)), grid, &mut [0; 32], schedule);
        assert!(found("").unwrap_err().contains("expected a barrier between both"));
        // A shuffle does not order memory.
        let error = found("shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;").unwrap_err();
        assert!(error.contains("expected a barrier between both"), "{error}");
        found("bar.warp.sync -1;").unwrap();
        // Among the lanes of a mask, and nobody else.
        found("shr.u32 %r6, %r1, 1;\nshl.b32 %r6, %r6, 1;\nshl.b32 %r7, 3, %r6;\nbar.warp.sync %r7;")
            .unwrap();
        let error = found("mov.b32 %r6, 1;\nshl.b32 %r7, %r6, %r1;\nbar.warp.sync %r7;").unwrap_err();
        assert!(error.contains("expected a barrier between both"), "{error}");
    }
}

/// Adds to the first word, and keeps what was there in `%r5`: `$order` says how.
macro_rules! last_block {
    ($order:literal, $between:literal) => {
        concat!(
            "mov.u32 %r2, %ctaid.x;\nadd.s32 %r3, %r2, 16;\nmul.wide.u32 %rd4, %r3, 4;\nadd.s64 %rd5, %rd1, %rd4;\n",
            "setp.ne.s32 %p1, %r1, 0;\n@%p1 bra $L_wait;\nadd.s32 %r4, %r2, 100;\nst.global.b32 [%rd5], %r4;\n",
            "atom.global.add.", $order, "u32 %r5, [%rd1], 1;\nst.shared.b32 [sums], %r5;\n$L_wait:\n", $between,
            "\nld.shared.b32 %r5, [sums];\nmov.u32 %r6, %nctaid.x;\nsub.s32 %r6, %r6, 1;\n",
            "setp.ne.s32 %p2, %r5, %r6;\n@%p2 bra $L_end;\n",
            "mul.wide.u32 %rd6, %r1, 4;\nadd.s64 %rd7, %rd1, %rd6;\nld.global.b32 %r7, [%rd7+64];\n",
            "st.global.b32 [%rd7+256], %r7;\n$L_end:\nret;"
        )
    };
}

#[test]
fn the_last_block_reads_what_others_wrote_if_they_release_it() {
    let blocks = 32;
    for order in ORDERS {
        let schedule = Schedule { order, ..Schedule::default() };
        let grid = (Dimensions([blocks, 1, 1]), Dimensions([32, 1, 1]));
        let run = |body: &str| {
            let mut numbers = vec![0; 128];
            run_by(&module(body), grid, &mut numbers, schedule).map(|()| numbers)
        };
        let found = run(last_block!("acq_rel.gpu.", "bar.sync 0;")).unwrap();
        assert_eq!(found[64..96], (100..100 + blocks).collect::<Vec<_>>(), "{order:?}");
        for relaxed in [last_block!("", "bar.sync 0;"), last_block!("acq_rel.cta.", "bar.sync 0;")] {
            let error = run(relaxed).unwrap_err();
            assert!(error.contains("expected an atomic that releases and one that acquires"), "{error}");
        }
        let error = run(last_block!("acq_rel.gpu.", "")).unwrap_err();
        assert!(error.contains("expected a barrier"), "{error}");
    }
}

#[test]
fn blocks_race_in_global_memory() {
    let neighbor = "mov.u32 %r2, %ctaid.x;\nxor.b32 %r3, %r2, 1;\nmul.wide.u32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd1, %rd4;\n\
                    mul.wide.u32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd1, %rd6;\n";
    let body = format!("{neighbor}st.global.b32 [%rd5], %r2;\nld.global.b32 %r4, [%rd7];\nret;");
    let unchanging = format!("{neighbor}st.global.b32 [%rd5], %r2;\nld.global.nc.b32 %r4, [%rd5];\nret;");
    let grid = (Dimensions([8, 1, 1]), Dimensions([1, 1, 1]));
    for order in ORDERS {
        let schedule = Schedule { order, ..Schedule::default() };
        let error = run_by(&module(&body), grid, &mut [0; 8], schedule).unwrap_err();
        assert!(error.contains("of block") && error.contains("expected an atomic that releases"), "{error}");
        let error = run_by(&module(&unchanging), grid, &mut [0; 8], schedule).unwrap_err();
        assert!(error.contains("expected one without .nc"), "{error}");
        // What several write is nobody's, unless they write the same.
        let written = |value: &str| {
            let body = format!("mov.u32 %r2, %ctaid.x;\nst.global.b32 [%rd1], {value};\nret;");
            let mut numbers = [0; 2];
            run_by(&module(&body), grid, &mut numbers, schedule).unwrap();
            numbers
        };
        assert_eq!((written("%r2"), written("7")), ([u32::MAX, 0], [7, 0]), "{order:?}");
    }
}

#[test]
fn warps_that_write_the_same_may_read_it() {
    // IREE's scans have every thread of a block do all of the work.
    let same = "st.global.b32 [%rd1], 7;\nld.global.b32 %r2, [%rd1];\nadd.u32 %r2, %r2, 1;\n\
                st.global.b32 [%rd1+4], %r2;\nld.global.b32 %r2, [%rd1+4];\nst.global.b32 [%rd1+8], %r2;\nret;";
    // Halves of a word, of which one is read after the other was written.
    let halves = "mov.b32 %r2, 7;\nst.global.b16 [%rd1], %r2;\nst.global.b16 [%rd1+2], %r2;\nld.global.u16 %r3, [%rd1];\n\
                  add.u32 %r3, %r3, 1;\nst.global.b16 [%rd1+4], %r3;\nst.global.b16 [%rd1+6], %r3;\nret;";
    // Warps from the second or the third on write nothing, and read.
    let some = |count: u32| {
        format!(
            "mov.u32 %r2, %tid.x;\nsetp.ge.u32 %p1, %r2, {count};\n@%p1 bra DONE;\nst.global.b32 [%rd1], 7;\nDONE:\n\
             ld.global.b32 %r3, [%rd1];\nret;"
        )
    };
    let grid = |threads| (Dimensions([1, 1, 1]), Dimensions([threads, 1, 1]));
    for order in ORDERS {
        let schedule = Schedule { order, ..Schedule::default() };
        for threads in [64, 128] {
            let mut numbers = [0; 3];
            run_by(&module(same), grid(threads), &mut numbers, schedule).unwrap();
            assert_eq!(numbers, [7, 8, 8], "{order:?}");
            run_by(&module(halves), grid(threads), &mut numbers, schedule).unwrap();
            assert_eq!(numbers, [0x7_0007, 0x8_0008, 8], "{order:?}");
        }
        for writers in [32, 64] {
            let error = run_by(&module(&some(writers)), grid(96), &mut [0; 1], schedule).unwrap_err();
            assert!(error.contains("expected a barrier between both"), "{error}");
        }
    }
}

#[test]
fn races_are_not_looked_for_where_nobody_wants_it() {
    let schedule = Schedule { finds_races: false, ..Schedule::default() };
    let grid = (Dimensions([1, 1, 1]), Dimensions([64, 1, 1]));
    run_by(&module(shared!("st.shared.b32 [sums], %r1;")), grid, &mut [0; 64], schedule).unwrap();
}

#[test]
fn copies_race() {
    const COPY: &str = "cp.async.ca.shared.global [%rd5], [%rd3], 4;\n";
    check(
        1,
        64,
        &[
            // Others wait for nothing, or see it without a barrier.
            (
                shared!(
                    "cp.async.ca.shared.global [%rd5], [%rd3], 4;\nbar.sync 0;\nld.shared.b32 %r4, [%rd7];"
                ),
                "is under way, expected cp.async.wait_group before it",
            ),
            (
                shared!(
                    "cp.async.ca.shared.global [%rd5], [%rd3], 4;\ncp.async.wait_all;\nld.shared.b32 %r4, [%rd7];"
                ),
                "expected",
            ),
            (
                shared!(
                    "ld.shared.b32 %r4, [%rd7];\ncp.async.ca.shared.global [%rd5], [%rd3], 4;\ncp.async.wait_all;"
                ),
                "expected",
            ),
            (
                shared!("cp.async.ca.shared.global [%rd5], [%rd3], 4;\nst.shared.b32 [%rd5], %r1;"),
                "is under way",
            ),
            (
                shared!("cp.async.ca.shared.global [%rd5], [%rd3], 4, 8;"),
                "found 8 bytes to read, expected at most 4",
            ),
        ],
    );
    let right = format!(
        "mov.b64 %rd4, sums;\nadd.s64 %rd5, %rd4, %rd2;\n{COPY}cp.async.wait_all;\nbar.sync 0;\nret;"
    );
    let grid = (Dimensions([1, 1, 1]), Dimensions([64, 1, 1]));
    run_by(&module(&right), grid, &mut [0; 64], Schedule::default()).unwrap();
    check_loads(&[
        ("cp.async.ca.shared.global [sums], [%rd3], 4, %p1;\nret;", "found ignore-src"),
        ("cp.async.ca.shared.global [sums], [%rd3], 4, 4, %rd4;\nret;", "found ignore-src or a cache policy"),
        ("cp.async.ca.shared.global.L2::cache_hint [sums], [%rd3], 4, %rd4;\nret;", "found .L2::cache_hint"),
    ]);
}

#[test]
fn barriers_have_rules() {
    check(
        1,
        64,
        &[
            ("setp.lt.u32 %p1, %r1, 8;\n@%p1 bar.sync 0;\nret;", "at an aligned barrier"),
            (
                "setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $L;\nbar.sync 0;\nret;\n$L:\nbar.sync 0;\nret;",
                "aligned barrier",
            ),
            ("bar.sync 16;\nret;", "found barrier 16, expected a number below 16"),
            ("bar.sync 0, 40;\nret;", "found 40 threads for a barrier, expected a multiple of 32"),
            ("bar.sync 0, 64;\nbar.sync 0, 96;\nret;", "a barrier that those do not reach"),
            (
                "setp.lt.u32 %p1, %r1, 32;\nselp.b32 %r2, 32, 64, %p1;\nbar.sync 0, %r2;\nbar.sync 0, 64;\nret;",
                "found",
            ),
        ],
    );
    check(
        1,
        32,
        &[
            (
                "mov.b32 %r2, 1;\nshl.b32 %r2, %r2, 3;\nsetp.eq.u32 %p1, %r1, 4;\n@%p1 bar.warp.sync %r2;\nret;",
                "found lane 4 with the mask 0x8, expected one that it is in",
            ),
            (
                "setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $L;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [sums];\n$L:\nret;",
                "found lanes 0xffffff00, expected all",
            ),
            (
                "mul.lo.u32 %r2, %r1, 8;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];\nret;",
                "expected a multiple of 16",
            ),
            (
                "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra $L;\nret;\n$L:\nmma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 \
                 {%r7, %r8, %r9, %r10}, {%r5, %r5}, {%r4}, {%r6, %r6, %r6, %r6};\nret;",
                "expected all",
            ),
        ],
    );
    // Each half of a warp has a mask of its own, one instruction for both.
    let body = "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r2, 0xffff, 0xffff0000, %p1;\n\
                vote.sync.ballot.b32 %r3, %p1, %r2;\nst.global.b32 [%rd3], %r3;\nret;";
    let mut numbers = [0; 32];
    let grid = (Dimensions([1, 1, 1]), Dimensions([32, 1, 1]));
    run_by(&module(body), grid, &mut numbers, Schedule::default()).unwrap();
    assert_eq!((numbers[0], numbers[31]), (0xffff, 0));
}

#[test]
fn nothing_is_there_before_it_is_written() {
    // A register, shared memory, and memory of the thread, in each of several blocks.
    let body = "mov.u32 %r9, %ctaid.x;\nmul.wide.u32 %rd4, %r9, 12;\nadd.s64 %rd5, %rd1, %rd4;\nst.global.b32 [%rd5], %r30;\n\
                ld.shared.b32 %r2, [sums];\nst.global.b32 [%rd5+4], %r2;\nld.local.b32 %r3, [own];\n\
                st.global.b32 [%rd5+8], %r3;\nmov.b32 %r30, 1;\nst.shared.b32 [sums], %r30;\nst.local.b32 [own], %r30;\nret;";
    let mut numbers = [0; 24];
    let grid = (Dimensions([8, 1, 1]), Dimensions([1, 1, 1]));
    run_by(&module(body), grid, &mut numbers, Schedule::default()).unwrap();
    assert_eq!(numbers, [u32::MAX; 24]);
}

#[test]
fn kernels_end() {
    check(1, 32, &[("$L:\nbra $L;", "found 100000 instructions of a warp, expected an end")]);
    check_loads(&[
        ("@%p1 ret;", "found no return at the end"),
        ("mov.b32 %r1, 1;", "found no return at the end"),
        ("$L:\nmov.b32 %r2, 1;\n$L:\nret;", "found the label $L twice"),
        ("bra $L;\n$L:", "found nothing after $L"),
    ]);
    // A lane that does not take part computes what it wants.
    let body = "mov.b64 %rd4, -1;\nsetp.eq.u32 %p1, %r1, 99;\n@%p1 cvta.shared.u64 %rd4, %rd4;\n\
                @%p1 ld.global.b32 %r2, [%rd4];\nret;";
    let grid = (Dimensions([1, 1, 1]), Dimensions([32, 1, 1]));
    run_by(&module(body), grid, &mut [0; 32], Schedule::default()).unwrap();
}

#[test]
fn modifiers_are_known_or_refused() {
    check_loads(&[
        ("add.sat.s32 %r2, %r1, %r1;\nret;", "found .sat"),
        ("add.cc.u32 %r2, %r1, %r1;\nret;", "found .cc"),
        ("div.rz.f32 %r2, %r1, %r1;\nret;", "found .rz"),
        ("add.rz.f64 %rd4, %rd1, %rd1;\nret;", "does not know"),
        ("cvt.rz.f16.f32 %rs1, %r1;\nret;", "found .rz"),
        ("max.relu.f16x2 %r2, %r1, %r1;\nret;", "found .relu"),
        ("max.xorsign.abs.f32 %r2, %r1, %r1;\nret;", "found .xorsign"),
        ("ld.acquire.gpu.global.b32 %r2, [%rd3];\nret;", "found .acquire"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2}, [sums];\nret;", "found another load of matrices"),
        ("ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r2, %r3}, [sums];\nret;", "found .m16n16"),
    ]);
}

#[test]
fn targets_have_what_they_have() {
    let error = |version: &str, target: &str, body: &str| {
        let text = text(body).replace(".version 7.8", version).replace(".target sm_90", target);
        Module::parse(&text).map(|_| ()).map_err(|error| error.to_string())
    };
    let wait = "griddepcontrol.wait;\nret;";
    assert_eq!(error(".version 7.8", ".target sm_90", wait), Ok(()));
    for (version, target, body, expected) in [
        (".version 7.8", ".target sm_80", wait, "found an instruction of sm_90, expected one that sm_80 has"),
        (
            ".version 7.7",
            ".target sm_90",
            wait,
            "found an instruction of PTX 7.8, expected one that PTX 7.7 has",
        ),
        (".version 7.8", ".target sm_80", "add.rn.bf16x2 %r2, %r1, %r1;\nret;", "of sm_90"),
        (".version 7.8", ".target sm_75", "cp.async.wait_all;\nret;", "of sm_80"),
        (".version 7.8", ".target sm_100", "ret;", "expected at most sm_90"),
        (".version 9.9", ".target sm_90", "ret;", "expected at most 8.7"),
        ("", ".target sm_90", "ret;", "found no .version and .target"),
    ] {
        let found = error(version, target, body).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn launches_have_limits() {
    let module = module("ret;");
    let error = |grid: [u32; 3], block: [u32; 3], shared: usize, allowed: Option<usize>| {
        launch(&module, (Dimensions(grid), Dimensions(block)), (shared, allowed))
    };
    assert_eq!(error([1; 3], [64, 1, 1], 47 << 10, None), Ok(()));
    assert_eq!(error([1; 3], [64, 1, 1], 100 << 10, Some(100 << 10)), Ok(()));
    for (grid, block, shared, allowed, expected) in [
        ([1; 3], [129, 1, 1], 0, None, "expected at most 128 of .maxntid"),
        ([1; 3], [1, 1, 65], 0, None, "expected 1 to 1024 threads"),
        ([1, 65536, 1], [1; 3], 0, None, "expected 1 to 1024 threads"),
        ([1; 3], [0, 1, 1], 0, None, "expected 1 to 1024 threads"),
        // It has 1024 bytes itself.
        ([1; 3], [1; 3], (47 << 10) + 1, None, "found 49153 bytes of shared memory, expected at most 49152"),
        ([1; 3], [1; 3], 100 << 10, Some(64 << 10), "expected at most 66560"),
        ([1; 3], [1; 3], 163 << 10, Some(163 << 10), "expected at most 166912"),
    ] {
        let found = error(grid, block, shared, allowed).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
    let large = text("ret;").replace("sums[1024]", "sums[49153]");
    let found = Module::parse(&large).unwrap_err().to_string();
    assert!(found.contains("found 49153 bytes of shared memory, expected at most 49152"), "{found}");
}
