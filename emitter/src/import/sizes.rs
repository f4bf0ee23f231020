//! The sizes of arguments that a program leaves open.

use std::collections::{BTreeMap, HashMap};

use super::{
    ast::{Function, Module},
    attributes::{integer, tensor_type, word},
    cursor::unquote,
    describe::ImportedFunction,
    fold::{Operand, fold},
};
use crate::{
    error::Error,
    types::{DYNAMIC, TensorType},
};

/// Sizes by the names of dimension variables, and shapes by the names of arguments.
pub type Sizes = BTreeMap<String, Vec<usize>>;

/// Returns the types of a function's arguments with these sizes.
pub(super) fn argument_types(
    module: &Module<'_>,
    function: &Function<'_>,
    described: &ImportedFunction,
    sizes: &Sizes,
) -> Result<Vec<TensorType>, Error> {
    let mut types = Vec::with_capacity(described.arguments.len());
    for (index, argument) in described.arguments.iter().enumerate() {
        let name = argument.shown_name(index);
        let what = argument_text(index, &name);
        let refused = |problem: String, hint: &str| Error::refused(&described.name, &what, problem, hint);
        let mut ty = tensor_type(&argument.ty).ok_or_else(|| {
            refused(
                format!("found {}, expected a tensor of a type that targets compute with", argument.ty),
                "convert it before exporting",
            )
        })?;
        if let Some(shape) = sizes.get(&name) {
            let fits = shape.len() == ty.rank()
                && shape.iter().zip(&ty.shape).all(|(size, open)| *open == DYNAMIC || open == size);
            if !fits {
                return Err(refused(
                    format!("found shape {shape:?}, expected one of {ty}"),
                    "give a size for each dimension: --shape NAME=8x100",
                ));
            }
            ty.shape.clone_from(shape);
        }
        types.push(ty);
    }
    let symbols = symbols(module, function);
    let mut open = Open { types, values: HashMap::new() };
    for (symbol, place) in &symbols {
        if let (Some([size]), Some((argument, dimension))) = (sizes.get(symbol).map(Vec::as_slice), place) {
            open.set(*argument, *dimension, *size);
        }
    }
    open.follow(function);
    let arguments: Vec<_> =
        described.arguments.iter().enumerate().map(|(index, argument)| argument.shown_name(index)).collect();
    let hint = || {
        let names: Vec<_> = symbols.keys().map(|symbol| format!("{symbol}=SIZE")).collect();
        let names = if names.is_empty() { "ARGUMENT=8x100".to_owned() } else { names.join(",") };
        format!("--shape {names}")
    };
    if let Some(name) = sizes.keys().find(|key| !arguments.contains(key) && !symbols.contains_key(*key)) {
        let known: Vec<_> = symbols.keys().chain(&arguments).map(String::as_str).collect();
        let problem =
            format!("found no dimension or argument '{name}', expected one of {}", known.join(", "));
        return Err(Error::refused(&described.name, "arguments", problem, hint()));
    }
    if let Some(index) = open.types.iter().position(TensorType::is_dynamic) {
        let problem = format!("found {}, expected a fixed shape", open.types[index]);
        return Err(Error::refused(
            &described.name,
            &argument_text(index, &arguments[index]),
            problem,
            hint(),
        ));
    }
    Ok(open.types)
}

/// Returns an argument as messages name it.
fn argument_text(index: usize, name: &str) -> String {
    format!("argument {index} \"{name}\"")
}

/// Returns the dimension variables of a program that `jax.export` wrote, with the argument and its dimension that each is.
///
/// The function that others call takes the size of a dimension and passes it to one whose argument has the variable's name.
fn symbols(module: &Module<'_>, function: &Function<'_>) -> BTreeMap<String, Option<(usize, usize)>> {
    let places = dimension_sizes(function);
    let mut symbols = BTreeMap::new();
    for op in function.body.ops.iter().filter(|op| op.name == "func.call") {
        let callee = op.attribute("callee").unwrap_or_default().trim_start_matches('@').trim_matches('"');
        let Some(callee) = module.functions.iter().find(|function| function.name == callee) else { continue };
        for (operand, attributes) in op.operands.iter().zip(&callee.argument_attributes) {
            if let Some(name) = attributes.get("jax.global_constant") {
                symbols.insert(unquote(name), places.get(operand).copied());
            }
        }
    }
    symbols
}

/// Returns the values of a function that are sizes of its arguments, with the argument and the dimension.
fn dimension_sizes<'t>(function: &Function<'t>) -> HashMap<&'t str, (usize, usize)> {
    let mut places = HashMap::new();
    for op in &function.body.ops {
        let of_argument = || {
            let arguments = &function.body.arguments;
            let argument =
                arguments.iter().position(|argument| Some(&argument.value) == op.operands.first())?;
            Some((argument, usize::try_from(integer(op.attribute("dimension")?)?).ok()?))
        };
        let place = match op.name {
            "stablehlo.get_dimension_size" => of_argument(),
            // With integers of 64 bits in JAX, sizes are converted to them.
            "stablehlo.convert" => op.operands.first().and_then(|operand| places.get(operand)).copied(),
            _ => None,
        };
        places.extend(op.results.zip(place));
    }
    places
}

/// Arguments of which some sizes are open.
struct Open<'t> {
    types: Vec<TensorType>,
    /// Integers that are known.
    values: HashMap<&'t str, Vec<i64>>,
}

impl<'t> Open<'t> {
    fn set(&mut self, argument: usize, dimension: usize, size: usize) {
        let open = self.types.get_mut(argument).and_then(|ty| ty.shape.get_mut(dimension));
        if let Some(open) = open.filter(|open| **open == DYNAMIC) {
            *open = size;
        }
    }

    /// Gives sizes to dimensions that the program asserts to be equal to what others say.
    fn follow(&mut self, function: &Function<'t>) {
        let places = dimension_sizes(function);
        for op in &function.body.ops {
            if let ("stablehlo.get_dimension_size", Some(name)) = (op.name, op.results) {
                let size = places
                    .get(name)
                    .and_then(|(argument, d)| self.types.get(*argument)?.shape.get(*d).copied());
                if let Some(size) =
                    size.filter(|size| *size != DYNAMIC).and_then(|size| i64::try_from(size).ok())
                {
                    self.values.insert(name, vec![size]);
                }
                continue;
            }
            let is_equation = op.name == "stablehlo.compare"
                && op.attribute("comparison_direction").and_then(word) == Some("EQ");
            if let (true, [x, y]) = (is_equation, op.operands.as_slice()) {
                for (open, other) in [(x, y), (y, x)] {
                    let (place, value) =
                        (places.get(open), self.values.get(other).and_then(|value| value.first().copied()));
                    if let (Some((argument, dimension)), Some(size)) =
                        (place, value.and_then(|size| usize::try_from(size).ok()))
                    {
                        self.set(*argument, *dimension, size);
                    }
                }
            }
            let Some((name, ty)) = op.results.zip(op.result_types.first().and_then(|ty| tensor_type(ty)))
            else {
                continue;
            };
            let operands: Option<Vec<_>> = op
                .operands
                .iter()
                .map(|operand| Some(Operand { ty: ty.clone(), known: Some(self.values.get(operand)?) }))
                .collect();
            if let Some(values) = operands.and_then(|operands| fold(op, &operands, &ty)) {
                self.values.insert(name, values);
            }
        }
    }
}
