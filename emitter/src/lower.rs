//! From graphs to MLIR, with melior.
//!
//! StableHLO and IREE's dialects are not registered. So all ops except `builtin.module` and `func.func` are built and printed
//! in generic form, and MLIR checks syntax and dominance alone. [`graph::Graph`] checks types as ops are added.

use melior::{
    Context,
    ir::{
        Attribute, Block, BlockLike, Identifier, Location, Module, Region, RegionLike, Type, Value,
        attribute::{StringAttribute, TypeAttribute},
        operation::{OperationBuilder, OperationLike, OperationMutLike, OperationPrintingFlags},
    },
};

use crate::{
    context::with_context,
    error::Error,
    global::{Global, Init},
    graph::{self, Function, Tensor},
    types::is_float,
};

/// Returns a module as text.
pub(crate) fn module<'g>(
    name: &str,
    globals: impl Iterator<Item = &'g Global>,
    functions: &[Function],
) -> Result<String, Error> {
    with_context(|context| module_text(context, name, globals, functions))
}

fn module_text<'g>(
    context: &Context,
    name: &str,
    globals: impl Iterator<Item = &'g Global>,
    functions: &[Function],
) -> Result<String, Error> {
    let unknown = Location::unknown(context);
    let mut module = Module::new(unknown);
    module.as_operation_mut().set_attribute("sym_name", StringAttribute::new(context, name).into());
    for global in globals {
        module.body().append_operation(lower_global(context, global)?);
    }
    for function in functions {
        module.body().append_operation(lower_function(context, function)?);
    }
    if !module.as_operation().verify() {
        return Err(mlir_error("builtin.module", "the module does not verify"));
    }
    // Names of arguments are locations, which are printed with all others or not at all.
    let has_names = functions.iter().any(Function::has_names);
    let flags = OperationPrintingFlags::new();
    let flags = if has_names { flags.enable_debug_info(true, false) } else { flags };
    module
        .as_operation()
        .to_string_with_flags(flags)
        .map(|text| text + "\n")
        .map_err(|error| mlir_error("builtin.module", error))
}

type Operation<'c> = melior::ir::Operation<'c>;

fn lower_global<'c>(context: &'c Context, global: &Global) -> Result<Operation<'c>, Error> {
    const OP: &str = "util.global";
    let ty = &global.ty;
    let mut attributes = vec![
        ("sym_name", StringAttribute::new(context, &global.symbol).into()),
        ("sym_visibility", StringAttribute::new(context, "private").into()),
        ("type", TypeAttribute::new(parse_type(context, ty)?).into()),
    ];
    let initial = match &global.init {
        Init::Parameter { scope, key } => format!("#flow.parameter.named<{scope:?}::{key:?}> : {ty}"),
        Init::Splat(number) => {
            attributes.push(("is_mutable", Attribute::unit(context)));
            let point = if is_float(ty.dtype) { ".0" } else { "" };
            format!("dense<{number}{point}> : {ty}")
        }
    };
    attributes.push(("initial_value", parse_attribute(context, OP, &initial)?));
    build(
        OP,
        OperationBuilder::new(OP, Location::unknown(context)).add_attributes(&named(context, &attributes)),
    )
}

fn lower_function<'c>(context: &'c Context, function: &Function) -> Result<Operation<'c>, Error> {
    const OP: &str = "func.func";
    let types = |tensors: &[Tensor]| {
        let types: Vec<_> = tensors.iter().map(|&tensor| function.type_of(tensor).to_string()).collect();
        types.join(", ")
    };
    let signature = format!("({}) -> ({})", types(&function.body.arguments), types(&function.body.results));
    let ty = Type::parse(context, &signature).ok_or_else(|| mlir_error(OP, &signature))?;
    let mut attributes = vec![
        ("sym_name", StringAttribute::new(context, &function.name).into()),
        ("function_type", TypeAttribute::new(ty).into()),
    ];
    if !function.argument_attributes.is_empty() {
        let of = |index| function.argument_attributes.get(&index).map_or("{}", String::as_str);
        let all: Vec<_> = (0..function.body.arguments.len()).map(of).collect();
        let all = parse_attribute(context, OP, &format!("[{}]", all.join(", ")))?;
        attributes.push(("arg_attrs", all));
    }
    if !function.result_names().is_empty() {
        let names = function.result_names().iter().map(|name| format!("{{jax.result_info = {name:?}}}"));
        let all = parse_attribute(context, OP, &format!("[{}]", names.collect::<Vec<_>>().join(", ")))?;
        attributes.push(("res_attrs", all));
    }
    let body =
        lower_region(context, function, &function.body, &vec![None; function.value_count()], "func.return")?;
    let builder = OperationBuilder::new(OP, Location::unknown(context));
    build(OP, builder.add_attributes(&named(context, &attributes)).add_regions([body]))
}

fn lower_region<'c>(
    context: &'c Context,
    function: &Function,
    region: &graph::Region,
    outer: &[Option<Value<'c, '_>>],
    terminator: &'static str,
) -> Result<Region<'c>, Error> {
    let result = Region::new();
    {
        let mut arguments = Vec::with_capacity(region.arguments.len());
        for &argument in &region.arguments {
            let ty = parse_type(context, function.type_of(argument))?;
            let unknown = Location::unknown(context);
            let name = function.argument_name(argument);
            arguments.push((ty, name.map_or(unknown, |name| Location::name(context, name, unknown))));
        }
        let block = result.append_block(Block::new(&arguments));
        let mut values = outer.to_vec();
        for (index, argument) in region.arguments.iter().enumerate() {
            let value = block.argument(index).map_err(|error| mlir_error(terminator, error))?;
            values[argument.index()] = Some(value.into());
        }
        for op in &region.ops {
            let mut regions = Vec::with_capacity(op.regions.len());
            for inner in &op.regions {
                let terminator = match op.name.split_once('.') {
                    Some(("scf", _)) => "scf.yield",
                    _ => "stablehlo.return",
                };
                regions.push(lower_region(context, function, inner, &values, terminator)?);
            }
            let operation = block.append_operation(lower_op(context, function, op, &values, regions)?);
            for (index, result) in op.results.iter().enumerate() {
                let value = operation.result(index).map_err(|error| mlir_error(&op.name, error))?;
                values[result.index()] = Some(value.into());
            }
        }
        let operands = resolve(terminator, &region.results, &values)?;
        let builder = OperationBuilder::new(terminator, Location::unknown(context)).add_operands(&operands);
        block.append_operation(build(terminator, builder)?);
    }
    Ok(result)
}

fn lower_op<'c>(
    context: &'c Context,
    function: &Function,
    op: &graph::Op,
    values: &[Option<Value<'c, '_>>],
    regions: Vec<Region<'c>>,
) -> Result<Operation<'c>, Error> {
    let mut attributes = Vec::with_capacity(op.attributes.len());
    for (name, text) in &op.attributes {
        attributes.push((&**name, parse_attribute(context, &op.name, text)?));
    }
    let mut results = Vec::with_capacity(op.results.len());
    for &result in &op.results {
        results.push(parse_type(context, function.type_of(result))?);
    }
    let unknown = Location::unknown(context);
    let location = if op.scope.is_empty() { unknown } else { Location::name(context, &op.scope, unknown) };
    let builder = OperationBuilder::new(&op.name, location)
        .add_operands(&resolve(&op.name, &op.operands, values)?)
        .add_attributes(&named(context, &attributes))
        .add_regions_vec(regions)
        .add_results(&results);
    build(&op.name, builder)
}

fn resolve<'c, 'a>(
    op: &str,
    tensors: &[Tensor],
    values: &[Option<Value<'c, 'a>>],
) -> Result<Vec<Value<'c, 'a>>, Error> {
    let value = |tensor: &Tensor| values.get(tensor.index()).copied().flatten();
    tensors
        .iter()
        .map(|tensor| {
            value(tensor).ok_or_else(|| mlir_error(op, "an operand is not a value of this function"))
        })
        .collect()
}

fn named<'c>(
    context: &'c Context,
    attributes: &[(&str, Attribute<'c>)],
) -> Vec<(Identifier<'c>, Attribute<'c>)> {
    attributes.iter().map(|&(name, attribute)| (Identifier::new(context, name), attribute)).collect()
}

fn build<'c>(op: &str, builder: OperationBuilder<'c>) -> Result<Operation<'c>, Error> {
    builder.build().map_err(|error| mlir_error(op, error))
}

fn parse_type<'c>(context: &'c Context, ty: &impl ToString) -> Result<Type<'c>, Error> {
    let text = ty.to_string();
    Type::parse(context, &text).ok_or_else(|| mlir_error("a type", text))
}

fn parse_attribute<'c>(context: &'c Context, op: &str, text: &str) -> Result<Attribute<'c>, Error> {
    Attribute::parse(context, text).ok_or_else(|| mlir_error(op, format!("attribute {text:.200}")))
}

fn mlir_error(op: &str, problem: impl ToString) -> Error {
    Error::Mlir { op: op.to_owned(), problem: problem.to_string() }
}
