//! Kernels in PTX, launched as the driver launches them.

mod kernel;

use kernel::{module, run, run_in_place, text};
use mlxcel_cuda_emulator::{Dimensions, Launch, Memory, Module, Schedule, Written};

/// Threads of kernels that may overlap.
const THREADS: u32 = 32;

#[test]
fn threads_take_their_own_way_and_meet_again() {
    // Odd threads double their number, and even ones add the sum of all numbers of the warp.
    let module = module(
        "ld.global.b32 %r2, [%rd3];\nand.b32 %r3, %r1, 1;\nsetp.eq.b32 %p1, %r3, 0;\nmov.b32 %r4, %r2;\n\
         @%p1 bra $L_even;\nshl.b32 %r4, %r2, 1;\n$L_even:\n\
         shfl.sync.bfly.b32 %r5, %r2, 16, 31, -1;\nadd.s32 %r6, %r2, %r5;\n\
         shfl.sync.bfly.b32 %r5, %r6, 8, 31, -1;\nadd.s32 %r6, %r6, %r5;\n\
         shfl.sync.bfly.b32 %r5, %r6, 4, 31, -1;\nadd.s32 %r6, %r6, %r5;\n\
         shfl.sync.bfly.b32 %r5, %r6, 2, 31, -1;\nadd.s32 %r6, %r6, %r5;\n\
         shfl.sync.bfly.b32 %r5, %r6, 1, 31, -1;\nadd.s32 %r6, %r6, %r5;\n\
         @%p1 add.s32 %r4, %r4, %r6;\nst.global.b32 [%rd3], %r4;\nret;",
    );
    let numbers: Vec<u32> = (0..64).collect();
    let found = run(&module, 64, &numbers).unwrap();
    let expected = |thread: u32| match thread {
        _ if thread % 2 == 1 => 2 * thread,
        0..32 => thread + (0..32).sum::<u32>(),
        _ => thread + (32..64).sum::<u32>(),
    };
    assert_eq!(found, (0..64).map(expected).collect::<Vec<_>>());
}

#[test]
fn warps_exchange_numbers_through_shared_memory() {
    // Each thread takes the number of the thread at the other end.
    let module = module(
        "ld.global.b32 %r2, [%rd3];\nmov.b64 %rd4, sums;\nadd.s64 %rd5, %rd4, %rd2;\nst.shared.b32 [%rd5], %r2;\n\
         bar.sync 0;\nsub.s32 %r3, 63, %r1;\nmul.wide.u32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd4, %rd6;\n\
         ld.shared.b32 %r4, [%rd7];\nst.global.b32 [%rd3], %r4;\nret;",
    );
    let numbers: Vec<u32> = (0..64).map(|n| n * 3).collect();
    let found = run(&module, 64, &numbers).unwrap();
    assert_eq!(found, numbers.iter().rev().copied().collect::<Vec<_>>());
    // What a thread of the first warp reads has not been written if there is no second one.
    assert_eq!(run(&module, 32, &numbers[..32]).unwrap(), vec![u32::MAX; 32]);
}

#[test]
fn a_warp_multiplies_matrices() {
    // A is all ones in bf16, B counts columns, so that each result is 16 times its column, and 1.
    let module = module(
        "shr.u32 %r2, %r1, 2;\ncvt.rn.f32.u32 %r3, %r2;\ncvt.rn.bf16x2.f32 %r4, %r3, %r3;\n\
         mov.b32 %r5, 0x3F803F80;\nmov.b32 %r6, 0f3F800000;\n\
         mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r7, %r8, %r9, %r10}, {%r5, %r5, %r5, %r5}, \
         {%r4, %r4}, {%r6, %r6, %r6, %r6};\nst.global.b32 [%rd3], %r7;\nst.global.b32 [%rd3+128], %r8;\nret;",
    );
    let found = run(&module, 32, &[0; 64]).unwrap();
    let expected = |lane: usize, next: usize| (16 * (lane % 4 * 2 + next) + 1) as f32;
    for lane in 0..32 {
        assert_eq!(f32::from_bits(found[lane]), expected(lane, 0), "lane {lane}");
        assert_eq!(f32::from_bits(found[32 + lane]), expected(lane, 1), "lane {lane}");
    }
}

#[test]
fn errors_of_a_gpu_are_told_with_their_place() {
    let error = |body: &str| run(&module(body), 64, &[0; 64]).expect_err(body);
    let found = error("ld.global.b32 %r2, [%rd3+4];\nret;");
    assert!(
        found.starts_with("k block [0, 0, 0]: ld.global.b32 %r2, [%rd3+4]: found 4 bytes at 0x"),
        "{found}"
    );
    let found = error("st.shared.b32 [sums+1024], %r1;\nret;");
    assert!(found.ends_with("of Shared memory, expected a place in an allocation"), "{found}");
    let found = error("ld.global.b32 %r2, [%rd1+2];\nret;");
    assert!(found.ends_with("expected a multiple of 4"), "{found}");
    let found = error("setp.lt.u32 %p1, %r1, 8;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;\nret;");
    assert!(found.contains("found lanes 0xff at an aligned barrier, expected 0xffffffff"), "{found}");
    let found = error("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;\nret;");
    assert!(found.contains("wait for others at a barrier"), "{found}");
    let found = error(
        "setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $L;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n$L:\nbarrier.sync 0;\nret;",
    );
    assert!(found.contains("found lanes 0xffffff00 that wait for others"), "{found}");
    let found = error("shfl.sync.idx.b32 %r2, %r1, 9, 31, 255;\nret;");
    assert!(found.contains("found lane 8 with the mask 0xff, expected one that it is in"), "{found}");
    let found = error("setp.lt.u32 %p1, %r1, 8;\n@%p1 shfl.sync.idx.b32 %r2, %r1, 9, 31, 255;\nret;");
    assert!(found.contains("reads lane 9, expected one that takes part"), "{found}");
}

#[test]
fn lanes_meet_at_a_barrier_before_the_code_of_a_branch() {
    let body = "setp.lt.u32 %p1, %r1, 4;\nmov.b32 %r2, 1;\n@%p1 bra $LATER;\n$BACK:\nbar.sync 0;\n\
                st.global.b32 [%rd3], %r2;\nret;\n$LATER:\nmov.b32 %r2, 7;\nbra $BACK;";
    let found = run(&module(body), 64, &[0; 64]).unwrap();
    assert!(
        found.iter().enumerate().all(|(lane, found)| *found == if lane < 4 { 7 } else { 1 }),
        "{found:?}"
    );
}

#[test]
fn threads_may_have_a_byte_of_a_word_each() {
    let body = "cvt.u64.u32 %rd4, %r1;\nadd.s64 %rd5, %rd1, %rd4;\nld.global.b8 %rs1, [%rd5];\n\
                st.global.b8 [%rd5], %rs1;\nld.global.b8 %rs2, [%rd5];\nst.global.b8 [%rd5], %rs2;\nret;";
    let numbers: Vec<u32> = (1..=16).collect();
    assert_eq!(run(&module(body), 64, &numbers).unwrap(), numbers);
}

#[test]
fn what_is_not_known_is_refused() {
    let error = |body: &str| Module::parse(&text(body)).unwrap_err().to_string();
    assert_eq!(
        error("wgmma.fence.sync.aligned;\nret;"),
        "k: wgmma.fence.sync.aligned: found 0 operands, expected at least 1"
    );
    assert_eq!(
        error("tex.1d.v4.f32.s32 %r1, %r2;\nret;"),
        "k: tex.1d.v4.f32.s32 %r1, %r2: found an instruction that the emulator does not know"
    );
    assert_eq!(error("bra $L9;\nret;"), "k: bra $L9: found no label $L9, expected one of the kernel");
    assert_eq!(
        error("mov.b32 %r99, 1;\nret;"),
        "k: mov.b32 %r99, 1: found %r99, expected a declared register"
    );
    assert_eq!(error("mov.b32 %r1, 1;"), "k: found no return at the end, expected one");
    assert!(Module::parse("hello").is_err());
    let launch = Launch {
        kernel: "none",
        grid: Dimensions([1, 1, 1]),
        block: Dimensions([1, 1, 1]),
        shared: 0,
        shared_allowed: None,
        parameters: vec![],
        overlap: None,
        schedule: Schedule::default(),
    };
    let error = launch.run(&module("ret;"), &Memory::new()).unwrap_err();
    assert_eq!(error.to_string(), "none: found no such kernel, expected one of the module");
}

/// Runs a kernel after one that writes the first of two numbers of each thread; says what is wrong if it begins early. It must be
/// right where it does not.
fn after_another(body: &str) -> Result<Vec<u32>, String> {
    let run = |begins_early: bool| {
        let mut numbers: Vec<u32> = (0..2 * THREADS).collect();
        let written = Written::default();
        let first = module("mul.lo.s32 %r2, %r1, 100;\nst.global.b32 [%rd3], %r2;\nret;");
        run_in_place(&first, THREADS, &mut numbers, Some(written.next(false)))?;
        run_in_place(&module(body), THREADS, &mut numbers, Some(written.next(begins_early))).map(|()| numbers)
    };
    run(false)?;
    run(true)
}

#[test]
fn what_nobody_writes_is_read_early() {
    // The weight is read before the wait, and what the kernel ahead wrote after it.
    let found = after_another(
        "ld.global.nc.b32 %r2, [%rd3+128];\ngriddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n\
         ld.global.b32 %r3, [%rd3];\nadd.s32 %r4, %r2, %r3;\nst.global.b32 [%rd3+128], %r4;\nret;",
    );
    let sums = (0..THREADS).map(|n| THREADS + n + 100 * n);
    assert_eq!(found.unwrap()[THREADS as usize..], sums.collect::<Vec<_>>());
}

/// Runs a kernel after one that writes a number of each thread and one that does nothing but wait and let the next begin, in this order.
fn after_two(order: [&str; 2]) -> Result<(), String> {
    let mut numbers: Vec<u32> = (0..2 * THREADS).collect();
    let written = Written::default();
    let mut launch = |body: &str, begins_early| {
        run_in_place(&module(body), THREADS, &mut numbers, Some(written.next(begins_early)))
    };
    launch("st.global.b32 [%rd3], %r1;\nret;", false)?;
    launch(&format!("griddepcontrol.{};\ngriddepcontrol.{};\nret;", order[0], order[1]), true)?;
    launch("ld.global.b32 %r2, [%rd3];\ngriddepcontrol.wait;\nret;", true)
}

#[test]
fn who_waits_first_lets_the_next_one_read_what_is_older() {
    assert_eq!(after_two(["wait", "launch_dependents"]), Ok(()));
    let error = after_two(["launch_dependents", "wait"]).unwrap_err();
    assert!(error.contains("found a load of what a kernel ahead writes"), "{error}");
}

#[test]
fn what_comes_too_early_is_an_error_with_its_place() {
    let wrong = |body: &str| after_another(body).unwrap_err();
    assert_eq!(
        wrong("ld.global.b32 %r2, [%rd3];\ngriddepcontrol.wait;\nret;"),
        "k block [0, 0, 0]: ld.global.b32 %r2, [%rd3]: found a load of what a kernel ahead writes, expected \
         griddepcontrol.wait before it"
    );
    assert_eq!(
        wrong("griddepcontrol.wait;\nld.global.nc.b32 %r2, [%rd3];\nret;"),
        "k block [0, 0, 0]: ld.global.nc.b32 %r2, [%rd3]: found a load of what a kernel ahead writes, expected a \
         load without .nc"
    );
    // What it writes, a kernel ahead may still read.
    assert_eq!(
        wrong("st.global.b32 [%rd3+128], %r1;\ngriddepcontrol.wait;\nret;"),
        "k block [0, 0, 0]: st.global.b32 [%rd3+128], %r1: found a store before griddepcontrol.wait, expected it \
         after that"
    );
    assert!(wrong("atom.global.add.u32 %r2, [%rd3+128], 1;\ngriddepcontrol.wait;\nret;").contains("a store"));
    // None waits, so that nobody who waits for this kernel waits for the one ahead.
    assert_eq!(
        wrong("ret;"),
        "k: found no thread that waits, expected griddepcontrol.wait before all have ended"
    );
    assert!(after_another("setp.eq.b32 %p1, %r1, 7;\n@%p1 bra $L;\ngriddepcontrol.wait;\n$L:\nret;").is_ok());
}
