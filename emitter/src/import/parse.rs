//! Reads MLIR's generic form, as MLIR prints it with locations.
//!
//! The form is that of the language reference of MLIR, <https://mlir.llvm.org/docs/LangRef/>, without what a printer never
//! writes: comments inside, successors of other ops than branches, and forward references.

use super::{
    ast::{Argument, Attributes, Function, Module, Op, Region},
    cursor::{Cursor, unquote},
};
use crate::error::Error;

/// Regions within regions, as deep as they are read.
const DEPTH_LIMIT: usize = 200;

/// Reads a module.
pub(super) fn parse(text: &str) -> Result<Module<'_>, Error> {
    let mut cursor = Cursor::new(text);
    let mut module = Module::default();
    let mut body = None;
    while !cursor.is_at_end() {
        if cursor.is_at("#") || cursor.is_at("!") {
            let (name, value) = alias(&mut cursor)?;
            module.aliases.insert(name, value);
        } else if cursor.take("{-#") {
            resources(&mut cursor, &mut module)?;
        } else if cursor.is_at("//") {
            cursor.line();
        } else if body.is_none() {
            body = Some(op(&mut cursor, 0)?);
        } else {
            // What the compiler says after it has printed the module.
            break;
        }
    }
    let mut body = body.ok_or_else(|| cursor.error("a module"))?;
    let region = body.regions.pop().unwrap_or_default();
    module.functions =
        region.ops.into_iter().filter(|op| op.name == "func.func").map(function).collect::<Result<_, _>>()?;
    Ok(module)
}

/// Reads `#name = value`.
fn alias<'t>(cursor: &mut Cursor<'t>) -> Result<(&'t str, &'t str), Error> {
    let name = cursor.take_while(|c| !c.is_whitespace() && c != '=');
    cursor.expect("=")?;
    Ok((name, cursor.balanced(&['\n'])?))
}

/// Reads `dialect_resources: {builtin: {name: "0x…"}} #-}` after its first bracket.
fn resources<'t>(cursor: &mut Cursor<'t>, module: &mut Module<'t>) -> Result<(), Error> {
    while !cursor.take("#-}") {
        if cursor.take("{") || cursor.take("}") || cursor.take(",") {
            continue;
        }
        let name = if cursor.is_at("\"") { cursor.quoted()?.trim_matches('"') } else { cursor.name()? };
        cursor.expect(":")?;
        if cursor.is_at("\"") {
            module.resources.insert(name, cursor.quoted()?.trim_matches('"'));
        }
    }
    Ok(())
}

fn op<'t>(cursor: &mut Cursor<'t>, depth: usize) -> Result<Op<'t>, Error> {
    if depth > DEPTH_LIMIT {
        return Err(cursor.error("fewer regions within regions"));
    }
    let results = if cursor.is_at("%") {
        let name = cursor.value()?;
        if cursor.take(":") {
            cursor.name()?;
        }
        cursor.expect("=")?;
        Some(name)
    } else {
        None
    };
    let name = cursor.quoted()?.trim_matches('"');
    cursor.expect("(")?;
    let operands = list(cursor, ")", |cursor| cursor.value())?;
    let mut attributes = Attributes::new();
    if cursor.take("<{") {
        dictionary(cursor, &mut attributes)?;
        cursor.expect(">")?;
    }
    let regions =
        if cursor.take("(") { list(cursor, ")", |cursor| region(cursor, depth + 1))? } else { Vec::new() };
    if cursor.take("{") {
        dictionary(cursor, &mut attributes)?;
    }
    cursor.expect(":")?;
    cursor.balanced(&['-'])?;
    cursor.expect("->")?;
    let result_types = types(cursor)?;
    let location = location(cursor)?;
    Ok(Op { name, results, operands, attributes, regions, result_types, location })
}

/// Reads a region after its place in the list of them, `{ … }`.
fn region<'t>(cursor: &mut Cursor<'t>, depth: usize) -> Result<Region<'t>, Error> {
    let mut region = Region::default();
    cursor.expect("{")?;
    if cursor.take("^") {
        cursor.name()?;
        if cursor.take("(") {
            region.arguments = list(cursor, ")", argument)?;
        }
        cursor.expect(":")?;
    }
    while !cursor.take("}") {
        if cursor.is_at("^") {
            return Err(cursor.error("one block"));
        }
        region.ops.push(op(cursor, depth)?);
    }
    Ok(region)
}

fn argument<'t>(cursor: &mut Cursor<'t>) -> Result<Argument<'t>, Error> {
    let value = cursor.value()?;
    cursor.expect(":")?;
    let ty = cursor.balanced(&[',', ')', ' '])?;
    Ok(Argument { value, ty, location: location(cursor)? })
}

/// Reads `loc(…)`, or nothing.
fn location<'t>(cursor: &mut Cursor<'t>) -> Result<&'t str, Error> {
    if cursor.is_at("loc(") { cursor.balanced(&[',', ')', '\n', ' ']) } else { Ok("") }
}

/// Reads one type, or several in parentheses.
fn types<'t>(cursor: &mut Cursor<'t>) -> Result<Vec<&'t str>, Error> {
    if cursor.take("(") {
        return list(cursor, ")", |cursor| ty(cursor, &[',', ')']));
    }
    Ok(vec![ty(cursor, &[' ', '\n', ','])?])
}

fn ty<'t>(cursor: &mut Cursor<'t>, ends: &[char]) -> Result<&'t str, Error> {
    let ty = cursor.balanced(ends)?;
    if ty.is_empty() { Err(cursor.error("a type")) } else { Ok(ty) }
}

/// Reads what commas separate, up to `end`.
fn list<'t, T>(
    cursor: &mut Cursor<'t>,
    end: &str,
    mut item: impl FnMut(&mut Cursor<'t>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut items = Vec::new();
    while !cursor.take(end) {
        if !items.is_empty() {
            cursor.expect(",")?;
        }
        items.push(item(cursor)?);
    }
    Ok(items)
}

/// Reads attributes after their brace. One without a value is a unit.
fn dictionary<'t>(cursor: &mut Cursor<'t>, attributes: &mut Attributes<'t>) -> Result<(), Error> {
    let all = list(cursor, "}", |cursor| {
        let name = if cursor.is_at("\"") { cursor.quoted()?.trim_matches('"') } else { cursor.name()? };
        let value = if cursor.take("=") { cursor.balanced(&[',', '}'])? } else { "unit" };
        Ok((name, value))
    })?;
    attributes.extend(all);
    Ok(())
}

/// Returns the dictionaries of a list, `[{…}, {…}]`.
pub(super) fn dictionaries(text: &str) -> Result<Vec<Attributes<'_>>, Error> {
    let mut cursor = Cursor::new(text);
    cursor.expect("[")?;
    list(&mut cursor, "]", braced)
}

/// Returns the attributes of a dictionary, `{…}`.
pub(super) fn attributes(text: &str) -> Result<Attributes<'_>, Error> {
    braced(&mut Cursor::new(text))
}

fn braced<'t>(cursor: &mut Cursor<'t>) -> Result<Attributes<'t>, Error> {
    let mut attributes = Attributes::new();
    cursor.expect("{")?;
    dictionary(cursor, &mut attributes)?;
    Ok(attributes)
}

fn function(op: Op<'_>) -> Result<Function<'_>, Error> {
    let ty = op.attribute("function_type").unwrap_or_default();
    let mut cursor = Cursor::new(ty);
    cursor.balanced(&['-'])?;
    cursor.expect("->")?;
    let result_types = types(&mut cursor)?;
    let attributes = |name| op.attribute(name).map(dictionaries).transpose().map(Option::unwrap_or_default);
    Ok(Function {
        name: unquote(op.attribute("sym_name").unwrap_or_default()),
        is_public: op.attribute("sym_visibility") != Some("\"private\""),
        argument_attributes: attributes("arg_attrs")?,
        result_attributes: attributes("res_attrs")?,
        result_types,
        body: op.regions.into_iter().next().unwrap_or_default(),
    })
}
