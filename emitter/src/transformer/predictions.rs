//! How long the kernels of steps should take on a GPU: a table that `cargo xtask gpu-check` shows beside what it measures.
//!
//! Bytes and operations are those of the emitted calls, and registers those of `tests/ptxas.txt`.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use mlxcel_artifacts::{Float, Quant};
use mlxcel_models::{Preset, Storage};
use safetensors::Dtype;

use super::build;
use crate::{
    cost::Calls,
    kernels::Isa,
    module::Module,
    plan::{Numerics, Plan},
};

const MODEL: &str = "llama-3.2-1b";
const VARIANTS: [(&str, Quant); 3] = [("bf16", Quant::None), ("q8", Quant::Q8), ("q4", Quant::Q4)];
/// Steps, and the positions in the cache before them.
const STEPS: [(&str, u64); 2] = [("step_1", 128), ("step_512", 0)];

/// Positions of a sequence, which few kernels depend on.
const CONTEXT: usize = 4096;

/// GPUs, and the bytes per second of their memory: what a copy reaches on an H200, and the most of an H100.
const GPUS: [(&str, f64); 2] = [("H200", 4140e9), ("H100", 3350e9)];
/// What products of many rows reach on both.
const OPERATIONS_PER_SECOND: f64 = 300e12;
/// What a kernel takes however little it does, what is between two kernels, also if they overlap, and what the host takes.
const KERNEL_US: f64 = 4.0;
const BETWEEN_US: f64 = 1.2;
const BETWEEN_OVERLAPPED_US: f64 = 0.45;
const HOST_US: f64 = 40.0;

/// The capability of both GPUs.
const CAPABILITY: &str = "sm_90";

/// Registers by kernel, such as `cuda_argmax-sm_80`.
type Registers = BTreeMap<String, String>;

/// Returns the microseconds that calls take on a GPU with so many bytes per second.
fn microseconds(calls: &Calls, positions: u64, bandwidth: f64) -> f64 {
    let moving = bytes(calls, positions) as f64 / bandwidth;
    let computing = calls.cost.operations as f64 / OPERATIONS_PER_SECOND;
    moving.max(computing) * 1e6 + calls.count as f64 * KERNEL_US
}

fn bytes(calls: &Calls, positions: u64) -> u64 {
    calls.cost.traffic.bytes + positions * calls.cost.traffic.position_bytes
}

/// Reads the committed table of ptxas.
fn registers() -> Registers {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptxas.txt")).unwrap();
    let mut rows = text.lines().filter(|line| !line.starts_with("//")).map(str::split_whitespace);
    let column = rows.next().unwrap().position(|word| word == CAPABILITY).unwrap();
    let registers = |cell: &str| cell.split('/').next().unwrap_or_default().to_owned();
    rows.map(|mut row| (row.next().unwrap().to_owned(), registers(row.nth(column - 1).unwrap()))).collect()
}

/// Returns the registers of a kernel in bundles for an instruction set.
fn registers_of(registers: &Registers, isa: Isa, kernel: &str) -> String {
    let of = |isa: Isa| registers.get(&format!("{kernel}-{}", isa.name()));
    of(isa).or_else(|| of(Isa::Sm80)).unwrap_or_else(|| panic!("{kernel}: not in tests/ptxas.txt")).clone()
}

/// Adds the rows of a step: one for each kernel, and for all of it with and without overlapping kernels.
fn add_step(
    table: &mut Vec<[String; 9]>,
    module: &Module,
    variant: &str,
    (step, positions): (&str, u64),
    known: &Registers,
) {
    let function = module.functions().iter().find(|function| function.name == step).unwrap();
    let calls = module.gpu_calls(function);
    let row = |name: &str, registers: [String; 2], calls: &Calls, us: [f64; 2]| {
        let [cuda, overlapped] = registers;
        let [first, second] = us.map(|us| format!("{us:.1}"));
        let (count, bytes) = (calls.count.to_string(), bytes(calls, positions).to_string());
        let operations = calls.cost.operations.to_string();
        [
            variant.to_owned(),
            step.to_owned(),
            name.to_owned(),
            count,
            bytes,
            operations,
            format!("{cuda}/{overlapped}"),
            first,
            second,
        ]
    };
    let mut all = Calls::default();
    let (mut sums, mut overlapping) = ([0.0; 2], 0);
    for (kernel, calls) in &calls {
        if known.contains_key(&format!("{kernel}-{}", Isa::Sm90.name())) {
            overlapping += calls.count;
        }
        let us = GPUS.map(|(_, bandwidth)| microseconds(calls, positions, bandwidth));
        sums = [sums[0] + us[0], sums[1] + us[1]];
        all.add(calls.cost);
        all.count += calls.count - 1;
        let registers = [Isa::Sm80, Isa::Sm90].map(|isa| registers_of(known, isa, kernel));
        table.push(row(kernel, registers, calls, us));
    }
    for (name, overlapping) in [("cuda", 0), ("cuda-sm_90", overlapping)] {
        let between =
            (all.count - overlapping) as f64 * BETWEEN_US + overlapping as f64 * BETWEEN_OVERLAPPED_US;
        let us = sums.map(|us| us + between + HOST_US);
        table.push(row(name, ["-", "-"].map(str::to_owned), &all, us));
    }
}

/// Returns the table in columns.
fn in_columns(rows: &[[String; 9]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..9).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

#[test]
fn kernels_take_as_long_as_they_move_and_compute() {
    let model = Preset::find(MODEL).unwrap().model().unwrap();
    let known = registers();
    let [[h200, copy], [h100, peak]] =
        GPUS.map(|(gpu, bandwidth)| [gpu.to_owned(), format!("{:.0}", bandwidth / 1e9)]);
    let mut text = format!(
        "// Microseconds of all calls of a step of {MODEL}: {KERNEL_US} a call, and bytes at {copy} GB/s ({h200}, what a copy reaches)\n\
         // or {peak} GB/s ({h100}, at most), or operations of products at {:.0} TFLOP/s. The rows `cuda` and `cuda-sm_90` are of\n\
         // whole steps for these targets: {BETWEEN_US} or {BETWEEN_OVERLAPPED_US} more a call, and {HOST_US} of the host. Registers are of these targets on {CAPABILITY}.\n",
        OPERATIONS_PER_SECOND / 1e12,
    );
    let us = |gpu: &str| format!("us_{gpu}");
    let header =
        ["variant", "step", "kernel", "calls", "bytes", "operations", "registers", &us(&h200), &us(&h100)];
    let mut table = vec![header.map(str::to_owned)];
    for (variant, quant) in VARIANTS {
        let plan = Plan { quant, ..Plan::new(&model, Float::Bf16, CONTEXT) };
        let plan = plan.for_target(Numerics { gpu: Some(Isa::Sm80), ..Numerics::default() });
        let (module, _) = build(&model, &plan, &Storage::all(Dtype::BF16)).unwrap();
        for step in STEPS {
            add_step(&mut table, &module, variant, step, &known);
        }
    }
    text += &in_columns(&table);
    insta::with_settings!({ snapshot_path => "../../tests/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("predictions", text);
    });
}
