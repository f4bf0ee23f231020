//! Reads StableHLO programs that others wrote, in MLIR's generic form.
//!
//! The dialects are not registered, so ops are read as they are written: what they mean is known by their names alone.

use std::collections::BTreeMap;

use melior::ir::{
    Attribute, BlockLike, Module, RegionLike, Type, ValueLike,
    attribute::{ArrayAttribute, DictionaryAttribute, IntegerAttribute, StringAttribute, TypeAttribute},
    operation::{OperationLike, OperationRef, WalkOrder, WalkResult},
    r#type::FunctionType,
};

use crate::{context::with_context, error::Error};

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedProgram {
    /// The functions that others call, in their order.
    pub functions: Vec<ImportedFunction>,
    /// How many ops of each name all functions have, `stablehlo.add`, also in regions of others. What delimits functions and
    /// regions is left out.
    pub ops: BTreeMap<String, usize>,
}

/// The function of a program that others call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFunction {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub arguments: Vec<ImportedArgument>,
    /// What it returns.
    pub results: Vec<ImportedResult>,
}

/// An argument of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedArgument {
    /// Its name, if the program says it: `p['w']`.
    pub name: Option<String>,
    /// Its type in MLIR: `tensor<100xf32>`.
    pub ty: String,
    /// The result that may take its place in memory, because the caller gives the argument away.
    pub donated_to: Option<usize>,
}

/// A result of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedResult {
    /// Its name, if the program says it: `result[0]['w']`.
    pub name: Option<String>,
    /// Its type in MLIR.
    pub ty: String,
}

/// Ops that are no work.
const DELIMITERS: [&str; 4] = ["builtin.module", "func.func", "func.return", "stablehlo.return"];

/// Reads a module in MLIR's generic form.
///
/// # Errors
/// MLIR refuses the text.
pub fn import(text: &str) -> Result<ImportedProgram, Error> {
    with_context(|context| {
        let refused =
            || Error::Mlir { op: "builtin.module".to_owned(), problem: "the text does not parse".to_owned() };
        Ok(program(&Module::parse(context, text).ok_or_else(refused)?))
    })
}

/// Reads a module.
fn program(module: &Module<'_>) -> ImportedProgram {
    let mut program = ImportedProgram::default();
    let body = module.body();
    let mut next = body.first_operation();
    while let Some(operation) = next {
        if name_of(operation).as_deref() == Some("func.func") {
            program.functions.extend(function(operation));
        }
        next = operation.next_in_block();
    }
    module.as_operation().walk(WalkOrder::PreOrder, |op| {
        if let Some(name) = name_of(op).filter(|name| !DELIMITERS.contains(&name.as_str())) {
            *program.ops.entry(name).or_insert(0) += 1;
        }
        WalkResult::Advance
    });
    program
}

fn name_of(operation: OperationRef<'_, '_>) -> Option<String> {
    operation.name().as_string_ref().as_str().ok().map(ToOwned::to_owned)
}

/// Reads a function; `None` if only the program itself calls it.
fn function(operation: OperationRef<'_, '_>) -> Option<ImportedFunction> {
    if text_of(operation.attribute("sym_visibility").ok()).is_some_and(|visibility| visibility == "private") {
        return None;
    }
    let name = text_of(operation.attribute("sym_name").ok())?;
    let ty = TypeAttribute::try_from(operation.attribute("function_type").ok()?).ok()?;
    let ty = FunctionType::try_from(ty.value()).ok()?;
    let body = operation.region(0).ok()?;
    let of = |what: &str| operation.attribute(what).ok().and_then(|all| ArrayAttribute::try_from(all).ok());
    let (of_arguments, of_results) = (of("arg_attrs"), of("res_attrs"));
    let arguments = (0..ty.input_count()).map(|index| {
        let attributes = of_arguments.and_then(|all| dictionary(&all, index));
        let donated = attributes.and_then(|all| all.element_by_name("tf.aliasing_output"));
        let donated = donated.and_then(|result| IntegerAttribute::try_from(result).ok());
        ImportedArgument {
            name: argument_name(&body, index),
            ty: type_text(ty.input(index).ok()),
            donated_to: donated.and_then(|result| usize::try_from(result.value()).ok()),
        }
    });
    let results = (0..ty.result_count()).map(|index| {
        let attributes = of_results.and_then(|all| dictionary(&all, index));
        let name = text_of(attributes.and_then(|all| all.element_by_name("jax.result_info")));
        ImportedResult { name: name.filter(|name| !name.is_empty()), ty: type_text(ty.result(index).ok()) }
    });
    Some(ImportedFunction { name, arguments: arguments.collect(), results: results.collect() })
}

/// Returns the name of an argument: that of its location, which JAX writes there.
fn argument_name<'c>(body: &impl RegionLike<'c, 'c>, index: usize) -> Option<String> {
    let argument = body.first_block()?.argument(index).ok()?;
    named_location(&argument.location().to_string())
}

/// Returns the name in a location that has one: `loc("x")` or `loc("x"(…))`, and not `loc("file.py":1:2)`.
fn named_location(text: &str) -> Option<String> {
    let quoted = text.strip_prefix("loc(\"")?;
    let end = quoted.find('"')?;
    let (name, rest) = quoted.split_at(end);
    (!name.is_empty() && !rest.starts_with("\":")).then(|| name.to_owned())
}

fn dictionary<'c>(all: &ArrayAttribute<'c>, index: usize) -> Option<DictionaryAttribute<'c>> {
    DictionaryAttribute::try_from(all.element(index).ok()?).ok()
}

fn text_of(attribute: Option<Attribute<'_>>) -> Option<String> {
    let attribute = attribute?;
    let text = StringAttribute::try_from(attribute).ok()?;
    // MLIR has no address for it, from which melior makes a slice.
    let is_empty = attribute.to_string() == "\"\"";
    Some(if is_empty { String::new() } else { text.value().to_owned() })
}

fn type_text(ty: Option<Type<'_>>) -> String {
    ty.map_or_else(String::new, |ty| ty.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = r#"
        "builtin.module"() ({
          "func.func"() <{
            arg_attrs = [{tf.aliasing_output = 1 : i32}, {}],
            function_type = (tensor<100xf32>, tensor<?x100xf32>) -> (tensor<f32>, tensor<100xf32>),
            res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = ""}],
            sym_name = "main", sym_visibility = "public"
          }> ({
          ^bb0(%w: tensor<100xf32> loc("p['w']"), %x: tensor<?x100xf32> loc("step.py":3:4)):
            %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
            %1 = "stablehlo.reduce"(%w, %0) ({
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %2 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
              "stablehlo.return"(%2) : (tensor<f32>) -> ()
            }) {dimensions = array<i64: 0>} : (tensor<100xf32>, tensor<f32>) -> tensor<f32>
            "func.return"(%1, %w) : (tensor<f32>, tensor<100xf32>) -> ()
          }) : () -> ()
          "func.func"() <{function_type = () -> (), sym_name = "inner", sym_visibility = "private"}> ({
            "func.return"() : () -> ()
          }) : () -> ()
        }) : () -> ()
    "#;

    #[test]
    fn public_functions_are_read_with_the_names_that_the_program_says() {
        let ImportedProgram { functions, ops } = import(STEP).unwrap();
        let [main] = functions.as_slice() else { panic!("{functions:?}") };
        let argument = |name: Option<&str>, ty: &str, donated_to| ImportedArgument {
            name: name.map(Into::into),
            ty: ty.into(),
            donated_to,
        };
        assert_eq!(main.name, "main");
        assert_eq!(
            main.arguments,
            [argument(Some("p['w']"), "tensor<100xf32>", Some(1)), argument(None, "tensor<?x100xf32>", None)]
        );
        let result =
            |name: Option<&str>, ty: &str| ImportedResult { name: name.map(Into::into), ty: ty.into() };
        assert_eq!(main.results, [result(Some("result[0]"), "tensor<f32>"), result(None, "tensor<100xf32>")]);
        let ops: Vec<_> = ops.iter().map(|(name, count)| format!("{name} {count}")).collect();
        assert_eq!(ops, ["stablehlo.add 1", "stablehlo.constant 1", "stablehlo.reduce 1"]);
    }

    #[test]
    fn what_mlir_refuses_is_an_error_with_its_words() {
        let error = import("\"builtin.module\"() ({").unwrap_err().to_string();
        assert!(error.starts_with("mlir refused builtin.module: "), "{error}");
    }

    #[test]
    fn locations_of_files_are_no_names() {
        assert_eq!(named_location("loc(\"x\")").as_deref(), Some("x"));
        assert_eq!(named_location("loc(\"p['w']\"(\"a.py\":1:2))").as_deref(), Some("p['w']"));
        for other in ["loc(\"a.py\":1:2)", "loc(unknown)", "loc(\"\")", ""] {
            assert_eq!(named_location(other), None, "{other}");
        }
    }
}
