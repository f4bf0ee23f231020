//! Instructions of kernels that were written by hand, against what Rust computes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod kernel;

use half::{bf16, f16};
use kernel::{module, run, text};
use mlxcel_cuda_emulator::Module;

/// Returns bits that look random.
fn random(count: usize) -> Vec<u32> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    (0..count).map(|_| next()).collect()
}

/// Runs an instruction of `%r2`, `%r3` and `%r4` to `%r5` on triples of numbers, each in 32 lanes, and returns `%r5`.
fn triples(instruction: &str, [x, y, z]: [&[u32]; 3]) -> Vec<u32> {
    let module = module(&format!(
        "ld.global.b32 %r2, [%rd3];\nld.global.b32 %r3, [%rd3+128];\nld.global.b32 %r4, [%rd3+256];\n\
         {instruction};\nst.global.b32 [%rd3], %r5;\nret;"
    ));
    run(&module, 32, &[x, y, z].concat()).unwrap()[..32].to_vec()
}

/// Applies a function to both halves.
fn halves(words: [u32; 3], function: impl Fn([u16; 3]) -> u16) -> u32 {
    let [low, high] = [0, 16].map(|shift| u32::from(function(words.map(|word| (word >> shift) as u16))));
    high << 16 | low
}

/// Checks an instruction of pairs of floats.
fn check_pairs(instruction: &str, numbers: [&[u32]; 3], function: impl Fn([u16; 3]) -> u16) {
    let found = triples(instruction, numbers);
    for lane in 0..32 {
        let words = numbers.map(|numbers| numbers[lane]);
        assert_eq!(found[lane], halves(words, &function), "{instruction} of {words:#x?}");
    }
}

#[test]
fn pairs_of_floats_are_computed_by_halves() {
    // Finite numbers of both types: no exponent is all ones.
    let numbers: Vec<u32> = random(96).iter().map(|word| word & 0xbbff_bbff).collect();
    let numbers = [&numbers[..32], &numbers[32..64], &numbers[64..]];
    let of_f16 = |function: fn(f16, f16) -> f16| {
        move |[x, y, _]: [u16; 3]| function(f16::from_bits(x), f16::from_bits(y)).to_bits()
    };
    check_pairs("add.rn.f16x2 %r5, %r2, %r3", numbers, of_f16(|x, y| x + y));
    check_pairs("sub.rn.f16x2 %r5, %r2, %r3", numbers, of_f16(|x, y| x - y));
    check_pairs("mul.rn.f16x2 %r5, %r2, %r3", numbers, of_f16(|x, y| x * y));
    let of_bf16 = |function: fn(bf16, bf16) -> bf16| {
        move |[x, y, _]: [u16; 3]| function(bf16::from_bits(x), bf16::from_bits(y)).to_bits()
    };
    check_pairs("max.bf16x2 %r5, %r2, %r3", numbers, of_bf16(|x, y| if x > y { x } else { y }));
    check_pairs("abs.bf16x2 %r5, %r2", numbers, |[x, ..]| x & 0x7fff);
    check_pairs("neg.f16x2 %r5, %r2", numbers, |[x, ..]| x ^ 0x8000);
}

#[test]
fn fused_pairs_are_rounded_once() {
    // Small integers and halves, where f64 is exact.
    let numbers: Vec<u32> = random(96)
        .iter()
        .map(|word| {
            let half = |bits: u32| u32::from(bf16::from_f32((bits as i8) as f32 / 2.0).to_bits());
            half(word >> 16) << 16 | half(*word)
        })
        .collect();
    let fused = |[x, y, z]: [u16; 3]| {
        let [x, y, z] = [x, y, z].map(|bits| f64::from(bf16::from_bits(bits).to_f32()));
        bf16::from_f32((x * y + z) as f32).to_bits()
    };
    check_pairs(
        "fma.rn.bf16x2 %r5, %r2, %r3, %r4",
        [&numbers[..32], &numbers[32..64], &numbers[64..]],
        fused,
    );
    // (1 + 2^-4)^2 = 1 + 2^-3 + 2^-8 is halfway between two numbers of bf16. What is far below it decides.
    let same = |bits: u16| vec![u32::from(bits) << 16 | u32::from(bits); 32];
    let x = same(bf16::from_f32(1.0 + 2_f32.powi(-4)).to_bits());
    for (z, result) in [(2_f32.powi(-60), 0x3f91), (0.0, 0x3f90), (-2_f32.powi(-60), 0x3f90)] {
        let z = same(bf16::from_f32(z).to_bits());
        assert_eq!(triples("fma.rn.bf16x2 %r5, %r2, %r3, %r4", [&x, &x, &z]), same(result));
    }
    // As is 1 + 2^-11 of f16, of which the lower one is even.
    let one = same(f16::ONE.to_bits());
    let half_step = same(f16::from_f32(2_f32.powi(-11)).to_bits());
    let found = triples("fma.rn.f16x2 %r5, %r2, %r3, %r4", [&one, &one, &half_step]);
    assert_eq!(found[0], 0x3c00_3c00);
}

#[test]
fn fields_of_bits_are_taken_out() {
    let words = random(32);
    let at: Vec<u32> = random(64)[32..].iter().map(|word| word % 40).collect();
    let count: Vec<u32> = random(96)[64..].iter().map(|word| word % 40).collect();
    let bit = |word: u32, at: u32| word >> at & 1;
    for signed in [false, true] {
        let name = if signed { "bfe.s32 %r5, %r2, %r3, %r4" } else { "bfe.u32 %r5, %r2, %r3, %r4" };
        let found = triples(name, [&words, &at, &count]);
        for lane in 0..32 {
            // As PTX ISA has it, bit by bit.
            let (word, at, count) = (words[lane], at[lane], count[lane]);
            let sign = if signed && count > 0 { bit(word, (at + count - 1).min(31)) } else { 0 };
            let expected = (0..32).fold(0, |field, index| {
                let is_in = index < count && at + index <= 31;
                field | (if is_in { bit(word, at + index) } else { sign }) << index
            });
            assert_eq!(found[lane], expected, "{name} of {word:#x}, {at}, {count}");
        }
    }
    assert_eq!(
        triples("popc.b32 %r5, %r2", [&words, &at, &count]),
        words.iter().map(|word| word.count_ones()).collect::<Vec<_>>()
    );
    let found = triples("prmt.b32 %r5, %r2, %r3, 0x2705", [&words, &at, &count]);
    for lane in 0..32 {
        let (low, high) = (words[lane].to_le_bytes(), at[lane].to_le_bytes());
        assert_eq!(found[lane].to_le_bytes(), [high[1], low[0], high[3], low[2]]);
    }
    let roots = triples("rsqrt.approx.f32 %r5, %r2", [&[4_f32.to_bits(); 32], &at, &count]);
    assert_eq!(roots, [0.5_f32.to_bits(); 32]);
}

#[test]
fn additions_return_what_was_before() {
    // All 64 threads add their number to one place, which is the last.
    let module = module(
        "add.s32 %r2, %r1, -3;\natom.global.add.acq_rel.gpu.s32 %r3, [%rd1+256], %r2;\n\
         bar.warp.sync -1;\nst.global.b32 [%rd3], %r3;\nret;",
    );
    let found = run(&module, 64, &[100; 65]).unwrap();
    assert_eq!(found[64].cast_signed(), 100 + (0..64).map(|thread| thread - 3).sum::<i32>());
    // Each thread found what those before it had left, in some order: its own addition leads to what another one found.
    let mut left: Vec<_> =
        (0..64).map(|thread: usize| found[thread].cast_signed() + thread as i32 - 3).collect();
    let mut before: Vec<_> = found[..64].iter().map(|before| before.cast_signed()).collect();
    left.push(100);
    before.push(found[64].cast_signed());
    left.sort_unstable();
    before.sort_unstable();
    assert_eq!(left, before);
}

#[test]
fn lanes_read_any_lane() {
    let body = |clamp: u32| {
        module(&format!(
            "ld.global.b32 %r2, [%rd3];\nmad.lo.s32 %r3, %r1, 5, 3;\n\
             shfl.sync.idx.b32 %r4|%p1, %r2, %r3, {clamp}, -1;\nselp.b32 %r5, 1000, 0, %p1;\n\
             add.s32 %r4, %r4, %r5;\nst.global.b32 [%rd3], %r4;\nret;"
        ))
    };
    let numbers: Vec<u32> = (0..32).map(|lane| lane * lane).collect();
    let found = run(&body(31), 32, &numbers).unwrap();
    let expected: Vec<u32> = (0..32).map(|lane| numbers[(lane * 5 + 3) % 32] + 1000).collect();
    assert_eq!(found, expected);
    // In segments of eight lanes.
    let found = run(&body(0x181f), 32, &numbers).unwrap();
    let expected: Vec<u32> = (0..32).map(|lane| numbers[lane / 8 * 8 + (lane * 5 + 3) % 8] + 1000).collect();
    assert_eq!(found, expected);
}

#[test]
fn registers_of_inner_scopes_are_their_own() {
    let load = |into: &str, limit: u32| {
        format!(
            "{{\n.reg .pred there;\nsetp.lt.u32 there, %r1, {limit};\nmov.b32 {into}, 7;\n\
             @there ld.global.nc.L1::no_allocate.b32 {into}, [%rd3];\n}}\n"
        )
    };
    // Lanes from 16 on have no memory.
    let body = format!(
        "{}{}add.s32 %r4, %r2, %r3;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 st.global.b32 [%rd3], %r4;\nret;",
        load("%r2", 16),
        load("%r3", 4)
    );
    let numbers: Vec<u32> = (100..116).collect();
    let found = run(&module(&body), 32, &numbers).unwrap();
    let expected: Vec<u32> = (0..16).map(|lane| 100 + lane + if lane < 4 { 100 + lane } else { 7 }).collect();
    assert_eq!(found, expected);
    let error = Module::parse(&text("{\n.reg .pred there;\n}\nsetp.lt.u32 there, %r1, 4;\nret;"));
    assert!(error.unwrap_err().to_string().ends_with("found there, expected a declared register"));
}

/// Small integers in pairs, the first in the lower half.
fn small_floats(count: usize, bits: impl Fn(f32) -> u16) -> (Vec<f32>, Vec<u32>) {
    let numbers: Vec<f32> = random(count).iter().map(|word| (word % 15) as f32 - 7.0).collect();
    let pair = |pair: &[f32]| u32::from(bits(pair[1])) << 16 | u32::from(bits(pair[0]));
    let words = numbers.chunks(2).map(pair).collect();
    (numbers, words)
}

/// Multiplies 16 × 16 numbers by 16 × 8 ones that `ldmatrix` loads from shared memory.
fn check_matrices(types: &str, bits: impl Fn(f32) -> u16) {
    // Both matrices by rows: 128 words of the first, then 64 of the second.
    let (numbers, words) = small_floats(384, bits);
    let (a, b) = numbers.split_at(256);
    let copy =
        |offset: usize| format!("ld.global.b32 %r2, [%rd3+{offset}];\nst.shared.b32 [%rd5+{offset}], %r2;\n");
    // Lane i points to row i % 16 of the half i / 16 of the first matrix, and to row i % 16 of the second.
    let body = format!(
        "mov.b64 %rd4, sums;\nadd.s64 %rd5, %rd4, %rd2;\n{}bar.sync 0;\n\
         and.b32 %r3, %r1, 15;\nshr.u32 %r4, %r1, 4;\nshl.b32 %r5, %r3, 5;\nshl.b32 %r6, %r4, 4;\n\
         add.s32 %r7, %r5, %r6;\ncvt.u32.u64 %r8, %rd4;\nadd.s32 %r9, %r8, %r7;\n\
         ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r9];\n\
         shl.b32 %r5, %r3, 4;\nadd.s32 %r9, %r8, %r5;\n\
         ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%r14, %r15}}, [%r9+512];\n\
         mov.b32 %r20, 0f3F000000;\nmov.b32 %r21, %r20;\nmov.b32 %r22, %r20;\nmov.b32 %r23, %r20;\n\
         mma.sync.aligned.m16n8k16.row.col.f32.{types}.{types}.f32 {{%r20, %r21, %r22, %r23}}, \
         {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{%r20, %r21, %r22, %r23}};\n\
         mul.wide.u32 %rd6, %r1, 16;\nadd.s64 %rd7, %rd1, %rd6;\n\
         st.global.v4.b32 [%rd7], {{%r20, %r21, %r22, %r23}};\nret;",
        (0..6).map(|part| copy(128 * part)).collect::<String>()
    );
    let found = run(&module(&body), 32, &words).unwrap();
    for lane in 0..32 {
        for part in 0..4 {
            let (row, column) = (lane / 4 + part / 2 * 8, lane % 4 * 2 + part % 2);
            let expected: f32 = (0..16).map(|k| a[16 * row + k] * b[8 * k + column]).sum::<f32>() + 0.5;
            assert_eq!(f32::from_bits(found[4 * lane + part]), expected, "{types}: row {row}, {column}");
        }
    }
}

#[test]
fn matrices_are_loaded_and_multiplied() {
    check_matrices("bf16", |x| bf16::from_f32(x).to_bits());
    check_matrices("f16", |x| f16::from_f32(x).to_bits());
}

#[test]
fn modifiers_change_operands_and_results() {
    let of = |x: f32, y: f32| [vec![x.to_bits(); 32], vec![y.to_bits(); 32]];
    let tiny = f32::MIN_POSITIVE / 2.0;
    for (instruction, x, y, expected) in [
        ("add.ftz.f32 %r5, %r2, %r3", tiny, 0.0, 0.0),
        ("add.f32 %r5, %r2, %r3", tiny, 0.0, tiny),
        ("mul.rn.ftz.f32 %r5, %r2, %r3", f32::MIN_POSITIVE, 0.5, 0.0),
        ("add.sat.f32 %r5, %r2, %r3", 2.0, 3.0, 1.0),
        ("add.sat.f32 %r5, %r2, %r3", -2.0, 1.0, 0.0),
        ("add.sat.f32 %r5, %r2, %r3", f32::NAN, 1.0, 0.0),
        ("cvt.sat.f32.f32 %r5, %r2", 0.25, 0.0, 0.25),
        ("fma.rz.f32 %r5, %r2, %r2, %r3", 1.0, -1e-20, 1.0_f32.next_down()),
        ("fma.rn.f32 %r5, %r2, %r2, %r3", 1.0, -1e-20, 1.0),
    ] {
        let [x, y] = of(x, y);
        let found = f32::from_bits(triples(instruction, [&x, &y, &y])[0]);
        assert_eq!(found, expected, "{instruction}");
    }
    let pair = |low: f32, high: f32| {
        u32::from(f16::from_f32(high).to_bits()) << 16 | u32::from(f16::from_f32(low).to_bits())
    };
    let one = vec![pair(1.0, 1.0); 32];
    let found = triples("fma.rn.relu.f16x2 %r5, %r2, %r3, %r4", [&[pair(-2.0, 3.0); 32], &one, &one]);
    assert_eq!(found[0], pair(0.0, 4.0));
    let found = triples("mad.hi.s32 %r5, %r2, %r3, %r4", [&[1 << 31; 32], &[4; 32], &[5; 32]]);
    assert_eq!(found[0].cast_signed(), 3);
}

#[test]
fn a_number_is_exchanged_if_it_is_what_was_expected() {
    // -1 has 64 bits in the register, and 32 in memory.
    let module = module(
        "ld.global.s32 %rd4, [%rd3];\natom.global.cas.b32 %r2, [%rd3], %rd4, 7;\nst.global.b32 [%rd3+128], %r2;\nret;",
    );
    let found = run(&module, 32, &[u32::MAX; 64]).unwrap();
    assert_eq!((found[0], found[32]), (7, u32::MAX));
}
