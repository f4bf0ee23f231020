//! Calls of the kernels that a program is linked with.

use std::collections::BTreeMap;

use safetensors::Dtype;

use super::{ast::Op, parse::attributes, replay::Replay};
use crate::{
    error::Error,
    graph::Tensor,
    kernels::{Executable, Grid, Isa, KernelConstant, LinkedFunction},
    types::{TensorType, signed_type},
};

/// The most items of a call, and blocks of a GPU in one dimension.
const ITEMS_MAX: usize = i32::MAX as usize;

/// The threads of a block of a GPU, unless the call says how many.
const THREADS: usize = 128;

/// The most threads of a block.
const THREADS_MAX: usize = 1024;

/// Workgroups that a CPU divides a call into, unless it says how many items each has.
const WORKGROUPS: usize = 64;

/// Bits of an address.
const ADDRESS_BITS: u32 = 64;

/// Bits of a number that a kernel for GPUs takes.
const WORD_BITS: u32 = 32;

/// Replays a call of a function that is linked. Returns `None` if there is none of this name.
pub(super) fn replay(
    replay: &mut Replay<'_, '_>,
    op: &Op<'_>,
    target: &str,
    operands: &[Tensor],
) -> Result<Option<Vec<Tensor>>, Error> {
    let kernels = &replay.options.kernels;
    let linked = kernels.functions.get(target).zip(kernels.isa());
    let Some((LinkedFunction { objects, parameter_bits }, isa)) = linked else { return Ok(None) };
    check(replay, op)?;
    let types: Vec<_> = operands.iter().map(|operand| stored(&replay.graph.type_of(*operand))).collect();
    let results = replay.result_types(op, operands, &[])?;
    let mut constants = constants(replay, op)?;
    let grid = grid(replay, op, isa, &mut constants)?;
    let wide = constants.iter().find(|(_, constant)| isa.is_gpu() && constant.word().is_none());
    if let Some((name, constant)) = wide {
        let problem = format!("found {name} = {}, expected at most 32 bits for a GPU", constant.attribute());
        return Err(replay.refused(
            op,
            problem,
            "pass an integer of 32 bits or an np.float32, or an operand",
        ));
    }
    if let Some(found) = parameter_bits {
        let addresses = std::iter::repeat_n(ADDRESS_BITS, types.len() + results.len());
        let expected: Vec<_> = addresses.chain(constants.iter().map(|_| WORD_BITS)).collect();
        if *found != expected {
            let list = |bits: &[u32]| bits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let problem = format!(
                "found a kernel @{target} with parameters of {} bits, expected {}",
                list(found),
                list(&expected)
            );
            let hint = "a kernel for GPUs takes the addresses of operands and results, then the attributes";
            return Err(replay.refused(op, problem, hint));
        }
    }
    let constants = constants.into_values().collect();
    let given = operands.iter().zip(&types);
    let given: Vec<_> = given.map(|(operand, ty)| converted(replay, *operand, ty.dtype)).collect();
    let made = results.iter().map(stored).collect();
    let executable = Executable::linked(isa, (target, objects), [types, made], constants, grid);
    let found = replay.graph.dispatch(&executable, &given, &[]);
    replay.executables.push(executable);
    let found = found.into_iter().zip(&results);
    Ok(Some(found.map(|(tensor, ty)| converted(replay, tensor, ty.dtype)).collect()))
}

/// Returns the type of a tensor in the memory that a kernel sees. Dispatches have no bits, no unsigned integers and no floats
/// of 8 bits.
fn stored(ty: &TensorType) -> TensorType {
    let dtype = match ty.dtype {
        Dtype::BOOL | Dtype::F8_E4M3 | Dtype::F8_E5M2 => Dtype::I8,
        other => signed_type(other),
    };
    TensorType::new(dtype, ty.shape.clone())
}

/// Returns a tensor with the elements of memory, or those in memory as another type. A boolean is a byte, 0 or 1.
fn converted(replay: &mut Replay<'_, '_>, tensor: Tensor, dtype: Dtype) -> Tensor {
    let found = replay.graph.dtype(tensor);
    if found != dtype && (found == Dtype::BOOL || dtype == Dtype::BOOL) {
        return replay.graph.convert(tensor, dtype);
    }
    replay.graph.bitcast_convert(tensor, dtype)
}

/// Checks that a call is of the kind that a kernel can compute: results of its own from operands.
fn check(replay: &Replay<'_, '_>, op: &Op<'_>) -> Result<(), Error> {
    let [effects, aliases] = ["has_side_effect", "output_operand_aliases"].map(|name| op.attribute(name));
    let (problem, hint) = if effects == Some("true") {
        (
            "found a call with side effects, expected a function of its operands".to_owned(),
            "export it without has_side_effect",
        )
    } else if aliases.is_some_and(|aliases| aliases != "[]") {
        (
            "found results in the memory of operands, expected memory of their own".to_owned(),
            "export it without input_output_aliases, and let the kernel write whole results",
        )
    } else if op.result_types.is_empty() {
        ("found a call without results, expected at least one".to_owned(), "return what the kernel computes")
    } else if replay.combiners > 0 {
        (
            "found a kernel in a region that combines numbers, expected it outside".to_owned(),
            "call it on tensors, before or after the reduction",
        )
    } else if let Some(layout) = other_layout(op) {
        (
            format!("found an operand or a result with the layout {layout}, expected row-major order"),
            "export it without layouts, and transpose instead",
        )
    } else {
        return Ok(());
    };
    Err(replay.refused(op, problem, hint))
}

/// Returns a layout of an operand or a result that is not row-major: `[0, 1]`, dimensions from the fastest to the slowest.
fn other_layout(op: &Op<'_>) -> Option<String> {
    let layouts = ["operand_layouts", "result_layouts"].into_iter().filter_map(|name| op.attribute(name));
    let dense = layouts.flat_map(|list| list.split("dense<").skip(1));
    let mut orders = dense.map(|rest| rest.split('>').next().unwrap_or_default());
    let found = orders.find(|order| {
        let numbers = order.trim_matches(['[', ']']).split(',').map(str::trim);
        let numbers: Vec<_> = numbers.filter(|number| !number.is_empty()).collect();
        let row_major = (0..numbers.len()).rev().map(|dimension| dimension.to_string());
        !row_major.eq(numbers.iter().copied())
    });
    found.map(ToOwned::to_owned)
}

/// Returns the attributes of a call by name: those of `backend_config`.
fn constants<'t>(replay: &Replay<'_, '_>, op: &Op<'t>) -> Result<BTreeMap<&'t str, KernelConstant>, Error> {
    // Before StableHLO had dictionaries there, JAX wrote them into an attribute of its own.
    let both = ["backend_config", "mhlo.backend_config"].map(|name| op.attribute(name));
    let mut constants = BTreeMap::new();
    for text in both.into_iter().flatten().filter(|text| *text != "\"\"") {
        if !text.starts_with('{') {
            let problem = format!("found the text {text} as backend_config, expected a dictionary");
            let hint = "export the call with jax.ffi.ffi_call and custom_call_api_version=4, its default";
            return Err(replay.refused(op, problem, hint));
        }
        for (name, value) in attributes(text)? {
            let constant = KernelConstant::read(value).ok_or_else(|| {
                let problem = format!(
                    "found {name} = {value}, expected an integer, a float of 32 or 64 bits or a boolean"
                );
                replay.refused(op, problem, "pass arrays as operands, and texts as numbers")
            })?;
            constants.insert(name, constant);
        }
    }
    Ok(constants)
}

/// Takes the attributes that say how the work is divided out of those of a call.
fn grid(
    replay: &Replay<'_, '_>,
    op: &Op<'_>,
    isa: Isa,
    constants: &mut BTreeMap<&str, KernelConstant>,
) -> Result<Grid, Error> {
    let mut take = |name: &str, default: usize, limit: usize| match constants.remove(name) {
        None => Ok(default),
        Some(KernelConstant::Integer(value)) if (1..=limit as i64).contains(&value) => Ok(value as usize),
        Some(found) => {
            let problem =
                format!("found {name} = {}, expected an integer from 1 to {limit}", found.attribute());
            Err(replay.refused(op, problem, "export the call with another number"))
        }
    };
    let items = take("items", 1, ITEMS_MAX)?;
    let grain = take("grain", items.div_ceil(WORKGROUPS), ITEMS_MAX)?;
    let threads = take("threads", THREADS, THREADS_MAX)?;
    Ok(Grid { items, grain: if isa.is_gpu() { threads } else { grain } })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        ProgramOptions,
        import::replayed::replayed_for,
        kernels::{LinkedKernels, Object},
    };

    /// Returns options with a kernel `scale` for an architecture.
    fn linked(arch: &str, parameter_bits: Option<&[u32]>) -> ProgramOptions {
        let object = Object { name: "0123.o".into(), bytes: vec![1].into() };
        let function = LinkedFunction {
            objects: Arc::from([object]),
            parameter_bits: parameter_bits.map(<[_]>::to_vec),
        };
        let functions = [("scale".to_owned(), function)].into();
        let elsewhere = [("armed".to_owned(), vec!["aarch64".to_owned()])].into();
        let kernels = LinkedKernels { arch: arch.into(), functions, elsewhere };
        ProgramOptions { kernels, ..ProgramOptions::default() }
    }

    const TYPE: &str = "tensor<2x3xf32>";

    /// Returns what becomes of a call of `scale` with these attributes.
    fn called(options: &ProgramOptions, attributes: &str) -> Result<String, String> {
        let line = format!(
            r#"%r = "stablehlo.custom_call"(%0) <{{call_target_name = "scale", {attributes}}}> : ({TYPE}) -> {TYPE}"#
        );
        replayed_for(options, &[TYPE], &line, TYPE)
    }

    /// Returns what is in a module. Snapshots of whole ones are compiled, and here is no object.
    fn inside(mlir: &str) -> &str {
        mlir.strip_prefix("module @model {\n").unwrap()
    }

    #[test]
    fn a_call_is_a_dispatch_of_the_function() {
        let config = "backend_config = {items = 200 : i64, by = 1.5 : f32, at = -2 : i64}";
        insta::assert_snapshot!(inside(&called(&linked("x86_64", None), config).unwrap()));
        let options = linked("x86_64", None);
        let before = called(&options, &format!("mhlo.{config}")).unwrap();
        assert_eq!(before, called(&options, config).unwrap(), "what JAX wrote before");
    }

    #[test]
    fn a_call_on_a_gpu_has_a_block_for_each_item() {
        let config =
            "backend_config = {items = 200 : i64, by = 1.5 : f32, at = -2 : i64, threads = 64 : i64}";
        let options = linked("nvptx64", Some(&[64, 64, 32, 32]));
        insta::assert_snapshot!(inside(&called(&options, config).unwrap()));
    }

    #[test]
    fn what_a_kernel_cannot_do_is_refused() {
        let of = |options: ProgramOptions, attributes: &str| {
            let error = called(&options, attributes).unwrap_err();
            error.strip_prefix("main: custom_call: ").unwrap().lines().next().unwrap().to_owned()
        };
        let cpu = |attributes: &str| of(linked("x86_64", None), attributes);
        let gpu = |attributes: &str| of(linked("nvptx64", Some(&[64, 64, 32])), attributes);
        assert_eq!(
            cpu("has_side_effect = true"),
            "found a call with side effects, expected a function of its operands"
        );
        assert_eq!(
            cpu("output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], \
                operand_index = 0, operand_tuple_indices = []>]"),
            "found results in the memory of operands, expected memory of their own"
        );
        let layouts = |order| format!("operand_layouts = [dense<[{order}]> : tensor<2xindex>]");
        assert_eq!(
            cpu(&layouts("0, 1")),
            "found an operand or a result with the layout [0, 1], expected row-major order"
        );
        assert!(called(&linked("x86_64", None), &layouts("1, 0")).is_ok());
        assert_eq!(
            cpu("backend_config = \"text\""),
            "found the text \"text\" as backend_config, expected a dictionary"
        );
        assert_eq!(
            cpu("backend_config = {a = [1, 2]}"),
            "found a = [1, 2], expected an integer, a float of 32 or 64 bits or a boolean"
        );
        assert_eq!(
            cpu("backend_config = {items = 0 : i64}"),
            "found items = 0 : i64, expected an integer from 1 to 2147483647"
        );
        assert_eq!(
            gpu("backend_config = {a = 0.5 : f64}"),
            "found a = 0x3FE0000000000000 : f64, expected at most 32 bits for a GPU"
        );
        assert_eq!(
            gpu("backend_config = {}"),
            "found a kernel @scale with parameters of 64, 64, 32 bits, expected 64, 64"
        );
        assert_eq!(
            gpu("backend_config = {threads = 2048 : i64}"),
            "found threads = 2048 : i64, expected an integer from 1 to 1024"
        );
    }

    #[test]
    fn a_region_that_combines_numbers_calls_none() {
        let line = r#"%z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
            %r = "stablehlo.reduce"(%0, %z) <{dimensions = array<i64: 0, 1>}> ({
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %c = "stablehlo.custom_call"(%a) <{call_target_name = "scale"}> : (tensor<f32>) -> tensor<f32>
              "stablehlo.return"(%c) : (tensor<f32>) -> ()
            }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>"#;
        let error = replayed_for(&linked("x86_64", None), &[TYPE], line, "tensor<f32>").unwrap_err();
        assert!(error.contains("found a kernel in a region that combines numbers"), "{error}");
    }

    #[test]
    fn calls_agree_on_types_and_names_exist() {
        let call = |target: &str, name: &str, by: &str| {
            format!(
                r#"%{name} = "stablehlo.custom_call"(%0) <{{call_target_name = "{target}", backend_config = {{by = {by}}}}}>
                : ({TYPE}) -> {TYPE}
                "#
            )
        };
        let of = |lines: String| replayed_for(&linked("x86_64", None), &[TYPE], &lines, TYPE);
        let error = of(call("scale", "x", "1 : i64") + &call("scale", "r", "1.5 : f32")).unwrap_err();
        assert_eq!(
            error,
            "@scale: program: found calls with 2 tensors and attributes (i64), and with 2 tensors and attributes (f32), \
             expected the same\n\
             hint: a function in C has the same parameters wherever it is called"
        );
        let two = of(call("scale", "x", "1.5 : f32") + &call("scale", "r", "2.5 : f32")).unwrap();
        assert_eq!(two.matches("func.func private @scale(").count(), 1, "{two}");
        let error = of(call("other", "r", "1 : i64")).unwrap_err();
        assert_eq!(
            error,
            "main: custom_call: found a call of @other, expected one of the kernels for x86_64: @scale\n\
             hint: compile a kernel of this name, to an ELF object or to PTX for CUDA, and link it with --kernels"
        );
        let error = of(call("armed", "r", "1 : i64")).unwrap_err();
        assert!(error.contains("found kernels @armed for aarch64 alone, expected one for x86_64"), "{error}");
    }
}
