//! What a program has, for people and for what is built of it.

use std::collections::BTreeMap;

use mlxcel_artifacts::entry::argument_name;

use super::ast::{Attributes, Function, Module, Region};
use super::cursor::unquote;

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

impl ImportedArgument {
    /// Returns its name, or what stands for it where the program says none: `arg0`.
    #[must_use]
    pub fn shown_name(&self, index: usize) -> String {
        argument_name(self.name.as_deref(), index)
    }
}

/// Ops that are no work.
const DELIMITERS: [&str; 2] = ["func.return", "stablehlo.return"];

/// Describes a program.
pub(super) fn describe(module: &Module<'_>) -> ImportedProgram {
    let mut ops = BTreeMap::new();
    module.functions.iter().for_each(|function| count(&function.body, &mut ops));
    let functions = module.functions.iter().filter(|function| function.is_public);
    ImportedProgram { functions: functions.map(|function| of_function(module, function)).collect(), ops }
}

fn count(region: &Region<'_>, ops: &mut BTreeMap<String, usize>) {
    for op in &region.ops {
        if !DELIMITERS.contains(&op.name) {
            *ops.entry(op.name.to_owned()).or_insert(0) += 1;
        }
        op.regions.iter().for_each(|region| count(region, ops));
    }
}

/// Describes a function.
pub(super) fn of_function(module: &Module<'_>, function: &Function<'_>) -> ImportedFunction {
    let Function { name, argument_attributes, result_attributes, result_types, body, .. } = function;
    let donations = donations(argument_attributes, body, result_types);
    let arguments = body.arguments.iter().zip(donations).map(|(argument, donated_to)| ImportedArgument {
        name: module.name_in(argument.location),
        ty: argument.ty.to_owned(),
        donated_to,
    });
    let results = result_types.iter().enumerate().map(|(index, ty)| {
        let name =
            result_attributes.get(index).and_then(|all| all.get("jax.result_info")).map(|text| unquote(text));
        ImportedResult { name: name.filter(|name| !name.is_empty()), ty: (*ty).to_owned() }
    });
    ImportedFunction { name: name.clone(), arguments: arguments.collect(), results: results.collect() }
}

/// Returns for each argument the result that it is given away for.
///
/// `tf.aliasing_output` names the result. `jax.buffer_donor` leaves it open: it is then the first of the argument's type that no
/// other argument is given away for.
fn donations(attributes: &[Attributes<'_>], body: &Region<'_>, results: &[&str]) -> Vec<Option<usize>> {
    let has = |index: usize, name: &str| attributes.get(index).and_then(|all| all.get(name).copied());
    let named = |index: usize| {
        super::attributes::integer(has(index, "tf.aliasing_output")?)
            .and_then(|result| usize::try_from(result).ok())
    };
    let mut donated: Vec<_> = (0..body.arguments.len())
        .map(|index| named(index).filter(|result| *result < results.len()))
        .collect();
    for (index, argument) in body.arguments.iter().enumerate() {
        if donated[index].is_none() && has(index, "jax.buffer_donor") == Some("true") {
            donated[index] = (0..results.len())
                .find(|result| results[*result] == argument.ty && !donated.contains(&Some(*result)));
        }
    }
    donated
}
