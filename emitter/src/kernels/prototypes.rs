//! Compares the calls of kernels in real programs with the prototypes in C.

mod stored;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use mlxcel_artifacts::{CacheType, Float, Quant};
use mlxcel_models::{ModelConfig, Preset, Storage, Weight};
use safetensors::Dtype;

use super::{
    arguments::F32Bits,
    cuda_expert_rows::{CudaMatmulExperts, GatedExperts},
    cuda_experts::{CudaExpertsAdd, CudaExpertsGated, ExpertMatrices, PairedRows},
    cuda_matmul::{CudaMatmul, CudaMatmulGated, CudaMatrix, Tiles},
    embed::Embed,
    executable::{Call, Executable, Grid},
    isa::Isa,
    matvec::{
        MAX_MATRICES, Matvec, MatvecActivation, MatvecBias, MatvecGate, MatvecMatrix, MatvecProducts,
        MatvecRow, MatvecWeights,
    },
    vector_product::{ProductOfColumns, ProductOfRows},
};
use stored::{group_forms, stored_in};

use crate::{
    graph::{Graph, Tensor},
    group_form::{GroupForm, Scales},
    layers::{
        compensation::{compensate, factor},
        packing_kernels::PackingKernels,
    },
    plan::{Numerics, Plan, Products},
    transformer::build,
    types::TensorType,
};

/// A parameter of a C function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: String,
    /// The type as C has it, without the name.
    ty: String,
}

/// The parameters of C functions, by the functions' names.
type Prototypes = BTreeMap<String, Vec<Parameter>>;

/// Returns a source after preprocessing.
fn preprocess(source: &Path, flags: &[&str]) -> String {
    let prefix = env::var_os("MLIR_SYS_220_PREFIX").map_or("/usr/lib/llvm-22".into(), PathBuf::from);
    let mut clang = Command::new(prefix.join("bin/clang"));
    let output =
        clang.args(["-E", "-P", "-std=c11", "-ffreestanding"]).args(flags).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the functions that begin with `keyword` and whose parameters are followed by `end`.
fn prototypes(text: &str, keyword: &str, end: char) -> Prototypes {
    let mut found = Prototypes::new();
    for (start, _) in text.match_indices(keyword) {
        let is_first = text[..start].trim_end().ends_with([';', '}']) || text[..start].trim().is_empty();
        let (name, rest) = text[start + keyword.len()..].split_once('(').unwrap();
        let (parameters, rest) = rest.split_once(')').unwrap();
        if is_first && rest.trim_start().starts_with(end) {
            found.insert(name.trim().to_owned(), parameters.split(',').map(parameter).collect());
        }
    }
    found
}

/// Parses `const float *x`.
fn parameter(text: &str) -> Parameter {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').unwrap() + 1;
    Parameter { name: text[name..].to_owned(), ty: text[..name].trim_end().to_owned() }
}

fn cpu_prototypes() -> Prototypes {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/cpu/kernels.h");
    prototypes(&preprocess(&header, &["--target=x86_64-none-elf"]), "void ", ';')
}

fn cuda_prototypes() -> Prototypes {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/cuda");
    let sources = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    sources
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .flat_map(|path| {
            let text = preprocess(&path, &["--target=nvptx64-nvidia-cuda"]);
            prototypes(&text, "__attribute__((nvptx_kernel)) void ", '{')
        })
        .collect()
}

/// Returns the C types that may stand for a tensor's elements.
fn element(isa: Isa, dtype: Dtype) -> &'static [&'static str] {
    match dtype {
        // What may be of several types has a number that says which.
        Dtype::F32 => &["float", "void"],
        Dtype::F16 | Dtype::BF16 => &["uint16_t", "void"],
        Dtype::I32 => &["int32_t", "void"],
        // Weights in groups and their scales have no sign of their own.
        Dtype::I8 if isa.q8_activation() == Dtype::I8 => &["int8_t", "uint8_t", "act_q8", "void"],
        Dtype::I8 => &["int8_t", "uint8_t", "void"],
        Dtype::I16 if isa.q8_activation() == Dtype::I16 => &["act_q8", "int16_t"],
        Dtype::I16 => &["int16_t"],
        _ => &[],
    }
}

/// Compares names, order, kinds and element types of a call's arguments with the C function's parameters.
fn compare(executable: &Executable, prototype: &[Parameter]) {
    let Executable { isa, function, operands, results, numbers, sizes, .. } = executable;
    let mut expected = prototype.iter();
    let mut next = |name: &str| {
        let parameter = expected.next().unwrap_or_else(|| panic!("{}: no parameter {name}", function));
        assert_eq!(parameter.name, name, "{function}");
        parameter.ty.as_str()
    };
    let overwritten = executable.overwritten();
    let qualifier = |index: usize| if overwritten.contains(&index) { "" } else { "const " };
    let pointers = operands.iter().enumerate().map(|(index, pointer)| (qualifier(index), pointer));
    for (qualifier, (name, ty)) in pointers.chain(results.iter().map(|pointer| ("", pointer))) {
        let found = next(name);
        let types = element(*isa, ty.dtype).iter().map(|element| format!("{qualifier}{element} *"));
        assert!(types.clone().any(|ty| ty == found), "{function}: {name} is {found}, not {ty}");
    }
    let integers: &[&str] = if isa.is_gpu() { &["int", "uint32_t"] } else { &["index"] };
    for name in numbers.iter().chain(sizes.iter().map(|(name, _)| name)) {
        let found = next(name);
        assert!(integers.contains(&found), "{function}: {name} is {found}");
    }
    let rest: Vec<_> = expected.collect();
    if isa.is_gpu() {
        assert!(rest.is_empty(), "{function}: {rest:?}");
    } else {
        let range = |parameter: &&Parameter, end| parameter.ty == "index" && parameter.name.ends_with(end);
        assert!(
            rest.len() == 2 && range(&rest[0], "begin") && range(&rest[1], "end"),
            "{function}: {rest:?}"
        );
    }
}

/// Returns every executable in programs that use all kernels.
fn executables() -> Vec<Executable> {
    let kernels = |isa| Numerics { products: Products::Kernels(isa), ..Numerics::default() };
    let targets = [
        kernels(Isa::X86_64V3),
        kernels(Isa::X86_64V4Bf16),
        kernels(Isa::Aarch64),
        Numerics { gpu: Some(Isa::Sm80), ..Numerics::default() },
    ];
    // Of one weight type and cache type after the other.
    let types = [
        (Quant::None, Dtype::F32, CacheType::Float(Float::F32)),
        (Quant::None, Dtype::BF16, CacheType::Float(Float::Bf16)),
        (Quant::None, Dtype::F16, CacheType::Float(Float::F16)),
        (Quant::Q8, Dtype::BF16, CacheType::Q8),
        (Quant::Q4, Dtype::BF16, CacheType::Q8),
        (Quant::Q8, Dtype::F32, CacheType::Q8),
        (Quant::Q4, Dtype::F32, CacheType::Q8),
        (Quant::Q8, Dtype::F16, CacheType::Q8),
        (Quant::Q4, Dtype::F16, CacheType::Q8),
        (Quant::Q4K, Dtype::F32, CacheType::Q8),
        (Quant::Q4K, Dtype::BF16, CacheType::Q8),
        (Quant::Q4K, Dtype::F16, CacheType::Q8),
    ];
    let mut found = Vec::new();
    for name in ["llama-3.2-1b", "mixtral-8x7b", "gpt2"] {
        let mut model = Preset::find(name).unwrap().model().unwrap();
        model.blocks.truncate(1);
        for numerics in targets {
            for (quant, dtype, cache_type) in types {
                // Long enough that attention of one token is divided into chunks.
                let plan = Plan { quant, cache_type, ..Plan::new(&model, Float::Bf16, 2048) };
                let plan = plan.for_target(numerics);
                if plan.validate(&model).is_ok() {
                    let (module, packing) = build(&model, &plan, &Storage::all(dtype)).unwrap();
                    found.extend(module.executables().chain(packing.executables()).cloned());
                }
            }
        }
    }
    found
}

/// Returns the executables of products on GPUs: of every type of weights, number of matrices and kind.
fn executables_of_products() -> Vec<Executable> {
    let mut found = Vec::new();
    for weights in MatvecWeights::every() {
        let (dtype, scale) = match weights {
            MatvecWeights::F32 => (Dtype::F32, None),
            MatvecWeights::Bf16 => (Dtype::BF16, None),
            MatvecWeights::F16 => (Dtype::F16, None),
            MatvecWeights::Q8 => (Dtype::I8, Some(Dtype::F32)),
            MatvecWeights::Q4 => (Dtype::I8, Some(Dtype::F16)),
            MatvecWeights::Groups(_) => (Dtype::I8, Some(Dtype::I32)),
        };
        let mut g = Graph::new();
        let out = || TensorType::new(Dtype::F32, [64]);
        let rows = g.argument(if dtype == Dtype::I8 { Dtype::BF16 } else { dtype }, &[64, 64]);
        let x = g.argument(Dtype::F32, &[64]);
        let weight = g.argument(dtype, &[64, 64]);
        let scales = scale.map(|scale| g.argument(scale, &[64]));
        for count in 1..=MAX_MATRICES {
            let matrix = CudaMatrix { weight, scales, bias: x, out: out(), outputs: 64 };
            for tiles in [Tiles::Small, Tiles::Medium, Tiles::Large] {
                let matrices = vec![matrix.clone(); count];
                let bias_type = MatvecBias::None;
                let call =
                    CudaMatmul { weights, tiles, x: rows, matrices, m: 64, k: 64, splits: 1, bias_type };
                let grid = call.grid();
                found.push(Call::new(&g, Isa::Sm80, call, grid).executable);
            }
        }
        let activation = MatvecActivation { activation: 0, steepness: F32Bits(0.0) };
        let gate = MatvecGate { limit: F32Bits(0.0), up_offset: F32Bits(0.0) };
        for tiles in [Tiles::Small, Tiles::Medium, Tiles::Large] {
            let call = CudaMatmulGated {
                weights,
                tiles,
                x: rows,
                matrices: [(weight, scales, x); 2],
                out: g.type_of(rows),
                n: 64,
                m: 64,
                k: 64,
                bias_type: MatvecBias::None,
                activation: activation.clone(),
                gate: gate.clone(),
            };
            let grid = call.grid();
            found.push(Call::new(&g, Isa::Sm80, call, grid).executable);
        }
        let none = F32Bits(0.0);
        let row =
            MatvecRow { x, norm_weight: x, norm_bias: x, norm: 0, norm_type: 0, epsilon: none, offset: none };
        let matrix = MatvecMatrix { weight, scales, bias: x, outputs: 64, first: 0 };
        let products = |count| MatvecProducts {
            weights,
            row,
            matrices: vec![matrix; count],
            inputs: 64,
            bias_type: MatvecBias::None,
        };
        let plain = (1..=MAX_MATRICES).map(|n| Matvec::Plain { products: products(n), outs: vec![out(); n] });
        let others = [
            Matvec::Activated { products: products(1), out: out(), activation: activation.clone() },
            Matvec::Gated { products: products(2), out: out(), activation, gate },
            Matvec::Added { products: products(1), residual: x, out: out(), factor: none },
        ];
        for call in plain.chain(others) {
            let grid = call.grid();
            found.push(Call::new(&g, Isa::Sm80, call, grid).executable);
        }
        let numbers = g.argument(Dtype::I32, &[1]);
        let (out, table) = (out(), weight);
        let rows_of =
            Embed { weights, tokens: numbers, table, scales, out, width: 64, vocab: 64, scale: none };
        found.push(Call::new(&g, Isa::Sm80, rows_of, Embed::grid(1)).executable);
        found.extend(executables_of_experts(&g, row, (weight, scales, numbers), weights));
        for tiles in [Tiles::Small, Tiles::Medium] {
            found.extend(executables_of_expert_rows(&g, (rows, weight, scales, numbers), weights, tiles));
        }
    }
    found
}

/// Returns the executables of mixtures on GPUs for a type of weights.
fn executables_of_experts(
    g: &Graph,
    row: MatvecRow,
    (weight, scales, token_experts): (Tensor, Option<Tensor>, Tensor),
    weights: MatvecWeights,
) -> [Executable; 2] {
    let x = row.x;
    let bias_type = MatvecBias::None;
    let matrices = ExpertMatrices { weights, weight, scales, bias: x, bias_type, outputs: 32, experts: 2 };
    let gated = CudaExpertsGated {
        row,
        inputs: 64,
        logits: x,
        experts: 2,
        active: 1,
        normalized: false,
        matrices,
        rows: PairedRows { up: 16, step: 1 },
        activation: MatvecActivation { activation: 0, steepness: F32Bits(0.0) },
        gate: MatvecGate { limit: F32Bits(0.0), up_offset: F32Bits(0.0) },
    };
    let sum = CudaExpertsAdd {
        x,
        inputs: 64,
        token_experts,
        token_shares: x,
        active: 1,
        matrices,
        residual: x,
        out: TensorType::new(Dtype::F32, [32]),
        factor: F32Bits(1.0),
    };
    let (gated_grid, sum_grid) = (gated.grid(), sum.grid());
    [Call::new(g, Isa::Sm80, gated, gated_grid).executable, Call::new(g, Isa::Sm80, sum, sum_grid).executable]
}

/// Returns those of mixtures of several tokens.
fn executables_of_expert_rows(
    g: &Graph,
    (x, weight, scales, numbers): (Tensor, Tensor, Option<Tensor>, Tensor),
    weights: MatvecWeights,
    tiles: Tiles,
) -> [Executable; 2] {
    let activation = MatvecActivation { activation: 0, steepness: F32Bits(0.0) };
    let gate = MatvecGate { limit: F32Bits(0.0), up_offset: F32Bits(0.0) };
    let gated = GatedExperts { row_tokens: numbers, rows: PairedRows { up: 1, step: 2 }, activation, gate };
    let bias_type = MatvecBias::Of(0);
    let matrices = ExpertMatrices { weights, weight, scales, bias: x, bias_type, outputs: 64, experts: 2 };
    [(Some(gated), g.dtype(x)), (None, Dtype::F32)].map(|(gated, ty)| {
        let call = CudaMatmulExperts {
            tiles,
            x,
            matrices,
            tile_list: numbers,
            out: TensorType::new(ty, [64, 32]),
            n: 32,
            max_tiles: 4,
            k: 64,
            gated,
        };
        let grid = call.grid();
        Call::new(g, Isa::Sm80, call, grid).executable
    })
}

/// Returns the executables of attention on GPUs: of every type of the cache, and heads of every width.
fn executables_of_gpu_attention() -> Vec<Executable> {
    let mut found = Vec::new();
    let llama = Preset::find("llama-3.2-1b").unwrap().config;
    let of_width = |width| llama.replace("\"head_dim\": 64", &format!("\"head_dim\": {width}"));
    // The heads of the last one have norms.
    let normed = Preset::find("qwen3-0.6b").unwrap().config.to_owned();
    for config in [64, 128, 256].map(of_width).into_iter().chain([normed]) {
        let mut model = ModelConfig::from_json(&config).unwrap();
        model.blocks.truncate(1);
        let floats = [Float::F32, Float::Bf16, Float::F16].map(CacheType::Float);
        for cache_type in floats.into_iter().chain([CacheType::Q8]) {
            let plan = Plan { cache_type, ..Plan::new(&model, Float::Bf16, 2048) };
            let numerics = Numerics { gpu: Some(Isa::Sm80), ..Numerics::default() };
            let (module, _) = build(&model, &plan.for_target(numerics), &Storage::all(Dtype::BF16)).unwrap();
            found.extend(module.executables().cloned());
        }
    }
    found
}

/// Returns every executable in programs with weights that the checkpoint stores in groups.
fn executables_of_groups() -> Vec<Executable> {
    let mut found = Vec::new();
    let forms: Vec<_> = group_forms().into_iter().map(|form| (form, Isa::X86_64V3)).collect();
    // Tiles have products of floats of their own.
    let by_tiles = forms.iter().filter(|(form, _)| form.takes_floats());
    let by_tiles: Vec<_> = by_tiles.map(|&(form, _)| (form, Isa::X86_64V4Amx)).collect();
    for name in ["llama-3.2-1b", "mixtral-8x7b"] {
        let mut model = Preset::find(name).unwrap().model().unwrap();
        model.blocks.truncate(1);
        for &(form, isa) in forms.iter().chain(&by_tiles) {
            let numerics = Numerics { products: Products::Kernels(isa), ..Numerics::default() };
            let plan = Plan { quant: Quant::Auto, ..Plan::new(&model, Float::Bf16, 2048) };
            let stored = |weight: &Weight| stored_in(form, weight);
            let (module, _) = build(&model, &plan.for_target(numerics), &stored).unwrap();
            found.extend(module.executables().cloned());
        }
    }
    found
}

/// Returns the executables that round weights by the moments of their inputs.
fn executables_of_moments() -> Vec<Executable> {
    let mut g = Graph::new();
    let moments = g.argument(Dtype::F32, &[320, 320]);
    let w = g.argument(Dtype::F32, &[20, 320]);
    let mut kernels = PackingKernels::new(Some(Isa::X86_64V3));
    let by = factor(&mut kernels, &mut g, moments);
    for (bits, scales) in [(4, Scales::Superblocks), (6, Scales::Halves)] {
        compensate(&mut kernels, &mut g, (w, by), GroupForm { bits, scales });
    }
    kernels.executables
}

/// Returns the executables of a program that multiplies matrices by vectors.
fn executables_of_programs() -> Vec<Executable> {
    let mut g = Graph::new();
    let (a, x) = (g.argument(Dtype::F32, &[64, 320]), g.argument(Dtype::F32, &[320]));
    let out = |count: usize| TensorType::new(Dtype::F32, [count]);
    let (grid, isa) = (Grid { items: 64, grain: 64 }, Isa::X86_64V3);
    let of_rows = ProductOfRows { a, x, out: out(64), rows: 64, columns: 320 };
    let of_columns = ProductOfColumns { a, x, out: out(320), rows: 64, columns: 320 };
    [Call::new(&g, isa, of_rows, grid), Call::new(&g, isa, of_columns, grid)]
        .map(|call| call.executable)
        .into()
}

#[test]
fn calls_match_the_c_prototypes() {
    let [cpu, cuda] = [cpu_prototypes(), cuda_prototypes()];
    let mut used = BTreeSet::new();
    let of_gpus = executables_of_products().into_iter().chain(executables_of_gpu_attention());
    let of_models = executables().into_iter().chain(executables_of_groups()).chain(of_gpus);
    for executable in of_models.chain(executables_of_moments()).chain(executables_of_programs()) {
        let (prototypes, name) =
            (if executable.is_gpu() { &cuda } else { &cpu }, executable.function_name().to_owned());
        let prototype = prototypes.get(&name).unwrap_or_else(|| panic!("{name} has no prototype"));
        compare(&executable, prototype);
        used.insert(name);
    }
    let all: BTreeSet<_> = cpu.keys().chain(cuda.keys()).cloned().collect();
    assert_eq!(used, all, "functions that calls use, and functions in C");
}

#[test]
fn prototypes_are_parsed() {
    let text = "typedef int index;\nstatic void f(int x);\nvoid g(const float *x,\n float *y, index n);\nvoid h(int x) { }";
    let found = prototypes(text, "void ", ';');
    let parameters: Vec<_> =
        found["g"].iter().map(|parameter| format!("{}|{}", parameter.ty, parameter.name)).collect();
    assert_eq!((found.len(), parameters.join(" ").as_str()), (1, "const float *|x float *|y index|n"));
}
