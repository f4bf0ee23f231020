//! Programs with kernels of their own, which a C compiler made into objects.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use mlxcel_artifacts::Tensor;
use mlxcel_emitter::{Graph, Isa, KernelConstant, Module, TensorType};
use mlxcel_runtime::{DeviceOptions, Program};
use object::{Endianness, Object as _, read::elf::ElfFile64};
use safetensors::Dtype;

use crate::programs_run::{Built, built, exported, tensors};

/// Compiles C for a target triple, and returns the object.
pub(crate) fn compiled(source: &Path, triple: &str, flags: &[String], object: PathBuf) -> PathBuf {
    let prefix = env::var_os("MLIR_SYS_220_PREFIX").map_or("/usr/lib/llvm-22".into(), PathBuf::from);
    let status = Command::new(prefix.join("bin/clang"))
        .args(["-std=c11", "-O2", "-ffreestanding", &format!("--target={triple}")])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status()
        .unwrap();
    assert!(status.success(), "{}", source.display());
    object
}

/// The flags for objects that can be linked.
const OBJECT: [&str; 2] = ["-fPIC", "-c"];

/// Compiles C for a CPU.
pub(crate) fn object(source: &Path, arch: &str, object: PathBuf) -> PathBuf {
    compiled(source, &format!("{arch}-linux-gnu"), &OBJECT.map(str::to_owned), object)
}

/// Calls a program's function with these arguments, and returns a result for each name.
fn called(built: &Built, inputs: &[(&str, Tensor)], results: &[&str]) -> Vec<Tensor> {
    let program = Program::new(built.bundle.clone()).unwrap();
    let mut function = program.load(DeviceOptions::default()).unwrap().function("main").unwrap();
    inputs.iter().for_each(|(name, tensor)| function.set(name, tensor).unwrap());
    function.call().unwrap();
    results.iter().map(|name| function.read(name).unwrap()).collect()
}

#[test]
fn a_kernel_in_c_computes_what_jax_computes() {
    let folder = tempfile::tempdir().unwrap();
    let source = exported("linear_recurrence.c");
    let objects =
        ["x86_64", "aarch64"].map(|arch| object(&source, arch, folder.path().join(format!("{arch}.o"))));
    let golden = format!("{}:{}", exported("kernel-in.npz").display(), exported("kernel-out.npz").display());
    let of = |kernels: &[PathBuf]| {
        built(&exported("kernel.jax"), |request| {
            request.targets = ["cpu", "cpu-x86-64-v3", "cpu-aarch64"].map(Into::into).into();
            request.kernels = kernels.to_vec();
            request.goldens = vec![golden.parse().unwrap()];
        })
        .unwrap()
    };
    let built = of(&objects);
    let program = Program::new(built.bundle.clone()).unwrap();
    let loaded = program.load(DeviceOptions::default()).unwrap();
    let result = loaded.replay(&program, &built.bundle.manifest().goldens[0]).unwrap();
    assert!(result.has_passed() && result.results.len() == 2, "{result:?}");

    // Neither names nor order of the files are in the bundle.
    let renamed = folder.path().join("another name.o");
    fs::rename(&objects[0], &renamed).unwrap();
    assert_eq!(of(&[objects[1].clone(), renamed]).bundle.digest(), built.bundle.digest());
}

/// IREE's loader leaves the table as it is on ARM, by which linkers call functions that can be seen from outside.
#[test]
fn code_for_arm_calls_kernels_directly() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = object(&exported("linear_recurrence.c"), "aarch64", folder.path().join("k.o"));
    let built = built(&exported("kernel.jax"), |request| {
        (request.targets, request.kernels) = (vec!["cpu-aarch64".into()], vec![kernel]);
    })
    .unwrap();
    let module =
        fs::read(built.bundle.blob_path(&built.bundle.manifest().targets["cpu-aarch64"].vmfb)).unwrap();
    let start = module.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    let file = ElfFile64::<Endianness>::parse(&module[start..]).unwrap();
    assert!(file.section_by_name(".text").is_some() && file.section_by_name(".plt").is_none());
}

#[test]
fn a_kernel_sees_every_kind_as_c_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let types = ["i1", "i8", "ui16", "ui32", "i64", "f64", "f16", "bf16", "complex<f32>"];
    let of = |types: &[&str]| -> Vec<String> { types.iter().map(|ty| format!("tensor<3x{ty}>")).collect() };
    let (arguments, results) = (of(&types), of(&["f64", "i1", "ui32", "complex<f32>"]).join(", "));
    let declared: Vec<_> =
        arguments.iter().enumerate().map(|(index, ty)| format!("%a{index}: {ty}")).collect();
    let passed: Vec<_> = (1..types.len()).map(|index| format!("%a{index}")).collect();
    // What surrounds the call has the compiler's own form of booleans.
    let text = format!(
        "func.func @main({}) -> ({results}) {{
           %true = stablehlo.constant dense<true> : tensor<3xi1>
           %not = stablehlo.xor %a0, %true : tensor<3xi1>
           %r:4 = stablehlo.custom_call @kinds(%not, {}) {{api_version = 4 : i32, backend_config =
             {{by = 0.25 : f64, flag = true, items = 3 : i64, grain = 2 : i32, scale = 2.0 : f32, shift = -7 : i32}}}}
             : ({}) -> ({results})
           %odd = stablehlo.and %r#1, %true : tensor<3xi1>
           return %r#0, %odd, %r#2, %r#3 : {results}
         }}",
        declared.join(", "),
        passed.join(", "),
        arguments.join(", "),
    );
    let path = folder.path().join("kinds.mlir");
    fs::write(&path, text).unwrap();
    // Half precision in registers is a part of these.
    let isa = if env::consts::ARCH == "x86_64" { Isa::X86_64V3 } else { Isa::Aarch64 };
    let flags = [isa.clang_flags(), OBJECT.map(str::to_owned).to_vec()].concat();
    let triple = format!("{}-linux-gnu", isa.arch());
    let kinds = compiled(&exported("kinds.c"), &triple, &flags, folder.path().join("kinds.o"));
    let built = built(&path, |request| request.kernels = vec![kinds]).unwrap();
    let bits = |dtype, bits: [u16; 3]| {
        Tensor::new(dtype, &[3], bits.into_iter().flat_map(u16::to_le_bytes).collect()).unwrap()
    };
    let complex = |parts: [f32; 6]| {
        Tensor::new(Dtype::C64, &[3], parts.into_iter().flat_map(f32::to_le_bytes).collect()).unwrap()
    };
    let inputs = [
        ("arg0", Tensor::of(&[3], &[true, false, true]).unwrap()),
        ("arg1", Tensor::of(&[3], &[-1_i8, 2, -128]).unwrap()),
        ("arg2", Tensor::of(&[3], &[1_u16, 2, 65535]).unwrap()),
        ("arg3", Tensor::of(&[3], &[1_u32, 2, u32::MAX]).unwrap()),
        ("arg4", Tensor::of(&[3], &[1_i64, 2, -5_000_000_000]).unwrap()),
        ("arg5", Tensor::of(&[3], &[0.5_f64, 1e9, -0.125]).unwrap()),
        // 1, 2 and -0.5.
        ("arg6", bits(Dtype::F16, [0x3c00, 0x4000, 0xb800])),
        ("arg7", bits(Dtype::BF16, [0x3f80, 0x4000, 0xbf00])),
        ("arg8", complex([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
    ];
    let found = called(&built, &inputs, &["result0", "result1", "result2", "result3"]);
    let sum = |b, rest: f64| 2.0 * (f64::from(b) + rest) + 0.25 + 1.0 - 7.0;
    let third = -128.0 + 65535.0 + f64::from(u32::MAX) - 5e9 - 0.125 - 1.0;
    let sums =
        [sum(false, -1.0 + 1.0 + 1.0 + 1.0 + 0.5 + 2.0), sum(true, 8.0 + 1e9 + 4.0), sum(false, third)];
    assert_eq!(found[0].numbers::<f64>().unwrap(), sums);
    assert_eq!(found[1], Tensor::of(&[3], &[true, false, true]).unwrap());
    assert_eq!(found[2].numbers::<u32>().unwrap(), [2, 3, 0]);
    assert_eq!(found[3], complex([2.0, 1.0, 4.0, 3.0, 6.0, 5.0]));
}

#[test]
fn a_graph_calls_a_kernel_in_a_loop() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = tensors(&exported("kernel-in.npz"));
    let ty = TensorType::new(Dtype::F32, [64, 100]);
    let mut g = Graph::new();
    let (a, x) = (g.argument(Dtype::F32, &ty.shape), g.argument(Dtype::F32, &ty.shape));
    let attributes: [(&str, KernelConstant); 4] = [
        ("channels", 100_i64.into()),
        ("scale", 0.5_f32.into()),
        ("steps", 64_i64.into()),
        ("items", 100_i64.into()),
    ];
    // Three times, each with the states of the one before.
    let states = g.repeat(3, &[x], |g, _, state| {
        g.custom_call("linear_recurrence", &[a, state[0]], std::slice::from_ref(&ty), &attributes)
    });
    let mut module = Module::new("m");
    module.add(g.finish("main", &states).unwrap());
    let path = folder.path().join("graph.mlir");
    fs::write(&path, module.to_mlir().unwrap()).unwrap();
    let kernel = object(&exported("linear_recurrence.c"), env::consts::ARCH, folder.path().join("k.o"));
    let built = built(&path, |request| request.kernels = vec![kernel]).unwrap();
    let given = [("arg0", inputs["a"].clone()), ("arg1", inputs["x"].clone())];
    let found = called(&built, &given, &["result0"])[0].numbers::<f32>().unwrap();
    let a = inputs["a"].numbers::<f32>().unwrap();
    let mut expected = inputs["x"].numbers::<f32>().unwrap();
    for _ in 0..3 {
        for i in 0..expected.len() {
            let before = if i < 100 { 0.0 } else { expected[i - 100] };
            expected[i] = a[i] * before + 0.5 * expected[i];
        }
    }
    let distance = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs());
    assert!(distance.fold(0.0, f32::max) < 1e-5);
}

#[test]
fn what_cannot_be_linked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let c = |name: &str, text: &str| {
        let source = file(&format!("{name}.c"), text.as_bytes());
        object(&source, "x86_64", folder.path().join(format!("{name}.o")))
    };
    let refused = |kernels: &[PathBuf], narrow: bool| {
        let error = built(&exported("kernel.jax"), |request| {
            request.targets = vec!["cpu-x86-64-v3".into()];
            (request.kernels, request.narrow_f64) = (kernels.to_vec(), narrow);
        });
        let error = error.err().expect("it was built");
        error.replace(&folder.path().display().to_string(), "F")
    };
    let source = exported("linear_recurrence.c");
    let kernel = object(&source, "x86_64", folder.path().join("kernel.o"));
    let bytes = fs::read(&kernel).unwrap();
    insta::assert_snapshot!(
        [
            refused(&[], false),
            refused(&[c("other", "void other(void) {}")], false),
            refused(&[object(&source, "aarch64", folder.path().join("arm.o"))], false),
            refused(&[c("sins", "float sinf(float); float sins(float x) { return sinf(x); }")], false),
            refused(
                &[c("none", "static int hidden(void) { return 1; } int (*const p)(void) = hidden;")],
                false
            ),
            refused(&[kernel.clone(), c("twice", "void linear_recurrence(void) { }")], false),
            refused(&[c("ours", "void product_of_rows(void) { }")], false),
            refused(&[c("first", "volatile int x; __attribute__((constructor)) void first(void) { ++x; }")], false),
            refused(&[c("own", "_Thread_local int calls; void own(void) { ++calls; }")], false),
            refused(&[c("iree", "void iree_hal_query(void) { }")], false),
            refused(&[file("cut.o", &bytes[..bytes.len() / 2])], false),
            refused(std::slice::from_ref(&source), false).replace(&exported("").display().to_string(), "JAX/"),
            refused(&[file("empty.o", b"")], false),
            refused(&[folder.path().join("missing.o")], false),
            refused(&[kernel], true),
        ]
        .join("\n"),
        @r#"
    error: main: custom_call at export.py:89: found a call of another runtime, @linear_recurrence, expected ops that are compiled
    hint: replace it with ops of StableHLO, or link a kernel of this name with --kernels
    error: main: custom_call at export.py:89: found a call of @linear_recurrence, expected one of the kernels for x86_64: @other
    hint: compile a kernel of this name, to an ELF object or to PTX for CUDA, and link it with --kernels
    error: main: custom_call at export.py:89: found kernels @linear_recurrence for aarch64 alone, expected one for x86_64 as well
    hint: compile the kernel for it, and link it with another --kernels
    error: F/sins.o: found sinf undefined, expected everything that kernels call in one of their objects
    hint: bundles have no libraries of C and C++: compile with -ffreestanding -fno-builtin -fno-stack-protector -fno-exceptions -fno-threadsafe-statics, and link what is missing, such as expf, with another --kernels
    error: F/none.o: found no function that others can call, expected at least one
    hint: a kernel is not static; in C++ and CUDA it is extern "C", and on GPUs __global__
    error: F/twice.o: found linear_recurrence, which F/kernel.o defines too, expected one of this name
    hint: rename one, or make it static
    error: F/ours.o: found product_of_rows, which is a kernel of mlxcel-compile's own, expected another name
    hint: rename it, or make it static
    error: F/first.o: found constructors of global variables, expected none: nothing runs them
    hint: in C++ make the variables constexpr or constinit
    error: F/own.o: found thread-local variables, expected none
    hint: use variables of functions
    error: F/iree.o: found iree_hal_query, which is a kernel of mlxcel-compile's own, expected another name
    hint: rename it, or make it static
    error: F/cut.o: damaged (Invalid ELF section header offset/size/alignment), expected a whole object or PTX
    hint: copy the file again, or compile it again
    error: JAX/linear_recurrence.c: a file of another kind, expected a relocatable ELF object or PTX
    hint: compile kernels for Linux with clang -c -O2 -ffreestanding -fPIC, or to PTX with nvcc -ptx
    error: F/empty.o: an empty file, expected a relocatable ELF object or PTX
    hint: compile kernels for Linux with clang -c -O2 -ffreestanding -fPIC, or to PTX with nvcc -ptx
    error: cannot read F/missing.o: No such file or directory (os error 2)
    error: found --kernels with --narrow-f64, expected one of them
    hint: kernels take the types of the program as it is; export it with f32
    "#
    );
}
