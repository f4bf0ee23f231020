//! Modules, variables and kernels as they are written.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::AtomicU8,
};

use super::{
    decode::decode,
    instruction::Work,
    module::{Error, Global, Kernel, Module},
    operands::{Scope, Symbol, constant},
};
use crate::types::{DYNAMIC_SHARED, Type};

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    /// It has an instruction that is not known here, or it is not PTX.
    pub fn parse(text: &str) -> Result<Self, Error> {
        module(text)
    }
}

/// Reads a module.
fn module(text: &str) -> Result<Module, Error> {
    let text = without_comments(text);
    let mut found = Module { kernels: BTreeMap::new(), globals: Vec::new() };
    let mut symbols = HashMap::new();
    let mut shared = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if [".version", ".target", ".address_size", ".file"].iter().any(|word| rest.starts_with(word)) {
            rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
            continue;
        }
        let end = rest
            .find([';', '{', '='])
            .ok_or_else(|| Error::new("module", "found no end, expected `;` or `}`"))?;
        let head = &rest[..end];
        if head.contains(".entry") {
            let (body, after) = body(&rest[end..])?;
            let kernel = kernel(head, body, &symbols, &shared)?;
            found.kernels.insert(kernel.name.clone(), kernel);
            rest = after.trim_start();
        } else if head.contains(".func") {
            return Err(Error::new(head.trim(), "found a function, expected kernels that call none"));
        } else {
            let (statement, after) = rest.split_once(';').unwrap_or((rest, ""));
            let variable = Variable::parse(statement)?;
            if variable.space == "shared" {
                shared.push(variable);
            } else {
                let content: Box<[_]> = variable.content.iter().copied().map(AtomicU8::new).collect();
                symbols.insert(variable.name.clone(), Symbol::Global(content.as_ptr() as u64));
                found.globals.push(Global { name: variable.name, content });
            }
            rest = after.trim_start();
        }
    }
    Ok(found)
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        plain.push_str(line.split("//").next().unwrap_or_default());
        plain.push('\n');
    }
    plain
}

/// Returns what is between a brace and the one that closes it, and what follows.
fn body(text: &str) -> Result<(&str, &str), Error> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Ok((&text[1..at], &text[at + 1..])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(Error::new("module", "found no end of a kernel, expected `}`"))
}

/// A variable as it is declared.
#[derive(Debug)]
struct Variable<'t> {
    space: &'t str,
    name: String,
    align: usize,
    is_extern: bool,
    content: Vec<u8>,
}

impl<'t> Variable<'t> {
    /// Reads `.visible .global .align 4 .u32 x[2] = {1, 2}`.
    fn parse(text: &'t str) -> Result<Self, Error> {
        let bad = |problem: &str| Error::new(text.trim(), problem);
        let (declared, values) =
            text.split_once('=').map_or((text, None), |(left, right)| (left, Some(right)));
        let mut align = None;
        let (mut space, mut ty, mut name, mut is_extern) = (None, None, None, false);
        let mut words = declared.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                ".align" => align = words.next().and_then(|word| word.parse().ok()),
                ".extern" => is_extern = true,
                ".global" | ".const" | ".shared" | ".local" | ".param" => space = word.strip_prefix('.'),
                _ if word.starts_with('.') => ty = ty.or(Type::of(&word[1..])),
                _ => name = Some(word),
            }
        }
        let (space, ty) = (
            space.ok_or_else(|| bad("found no state space, expected one"))?,
            ty.ok_or_else(|| bad("found no type, expected one"))?,
        );
        let name = name.ok_or_else(|| bad("found no name, expected one"))?;
        let (name, sizes) = name.split_once('[').unwrap_or((name, ""));
        let count = sizes
            .split(['[', ']'])
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .try_fold(1_usize, |count, size| count.checked_mul(size.parse().ok()?));
        let count = if sizes.starts_with(']') { Some(0) } else { count };
        let count =
            count.filter(|count| *count <= 1 << 28).ok_or_else(|| bad("found no size, expected numbers"))?;
        let mut content = Vec::with_capacity(count * ty.bytes());
        for value in
            values.unwrap_or_default().split(['{', '}', ',']).map(str::trim).filter(|value| !value.is_empty())
        {
            let value =
                constant(value).ok_or_else(|| bad("found a value that is no number, expected numbers"))?;
            content.extend(&value.to_le_bytes()[..ty.bytes()]);
        }
        content.resize(count * ty.bytes(), 0);
        Ok(Self { space, name: name.to_owned(), align: align.unwrap_or(ty.bytes()), is_extern, content })
    }

    /// Returns its place after `used` bytes, and adds it to them.
    fn place(&self, used: &mut usize) -> u64 {
        if self.is_extern {
            return DYNAMIC_SHARED;
        }
        let place = used.next_multiple_of(self.align.max(1));
        *used = place + self.content.len();
        place as u64
    }
}

/// Reads a kernel: `.visible .entry name( parameters ) .maxntid 32, 1, 1`, and its body. Of the module's variables in shared memory
/// it has those that it names.
fn kernel(
    head: &str,
    body: &str,
    symbols: &HashMap<String, Symbol>,
    shared: &[Variable<'_>],
) -> Result<Kernel, Error> {
    let after = head.split(".entry").nth(1).unwrap_or_default();
    let (name, parameters) =
        after.split_once('(').ok_or_else(|| Error::new(head.trim(), "found no parameters, expected `(`"))?;
    let parameters = parameters.split(')').next().unwrap_or_default();
    let mut kernel = Kernel { name: name.trim().to_owned(), ..Kernel::default() };
    let mut scope = Scope::new(symbols.clone());
    for variable in shared.iter().filter(|variable| body.contains(&variable.name)) {
        let place = Symbol::Shared(variable.place(&mut kernel.shared));
        scope.symbols.insert(variable.name.clone(), place);
    }
    let mut offset = 0;
    for text in parameters.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        // Words such as `.ptr .global` say where a parameter points to, which is not where it is.
        let own: Vec<_> = text.split_whitespace().collect();
        let pointer = own.iter().position(|word| *word == ".ptr");
        let plain = match pointer {
            Some(at) => [&own[..at], &own[own.len() - 1..]].concat().join(" "),
            None => own.join(" "),
        };
        let variable = Variable::parse(&plain)?;
        let place = variable.place(&mut offset);
        kernel.parameters.push((place as usize, variable.content.len()));
        scope.symbols.insert(variable.name, Symbol::Parameter(place));
    }
    code(body, &mut scope, &mut kernel)?;
    if !matches!(kernel.code.last().map(|last| &last.work), Some(Work::Return | Work::Branch(_))) {
        return Err(Error::new(&kernel.name, "found no return at the end, expected one"));
    }
    kernel.registers = scope.registers;
    Ok(kernel)
}

/// Reads the body of a kernel.
fn code(body: &str, scope: &mut Scope, kernel: &mut Kernel) -> Result<(), Error> {
    let statements = statements(body);
    let mut targets = HashMap::new();
    let mut count = 0;
    for statement in &statements {
        match statement {
            Statement::Label(label) => _ = targets.insert(*label, count),
            Statement::Text(text) if !text.starts_with('.') => count += 1,
            _ => {}
        }
    }
    for statement in &statements {
        match statement {
            Statement::Open => scope.enter(),
            Statement::Close => scope.leave(),
            Statement::Label(_) => {}
            Statement::Text(text) if text.starts_with('.') => declare(text, scope, kernel)?,
            Statement::Text(text) => {
                let instruction = decode(text, scope, &targets)
                    .map_err(|problem| Error::new(format!("{}: {text}", kernel.name), problem))?;
                kernel.code.push(instruction);
            }
        }
    }
    Ok(())
}

/// A part of a kernel's body.
#[derive(Debug, PartialEq, Eq)]
enum Statement<'t> {
    /// Braces of an inner scope.
    Open,
    Close,
    Label(&'t str),
    /// A directive or an instruction, without the semicolon.
    Text(&'t str),
}

/// Takes a body apart.
fn statements(body: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    let mut rest = body.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['{', '}']) {
            found.push(if rest.starts_with('{') { Statement::Open } else { Statement::Close });
            rest = after.trim_start();
            continue;
        }
        let word_end = rest.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(rest.len());
        let word = &rest[..word_end];
        if let Some(label) = word.strip_suffix(':') {
            found.push(Statement::Label(label));
            rest = rest[word_end..].trim_start();
            continue;
        }
        let end = if word == ".loc" { '\n' } else { ';' };
        let (text, after) = rest.split_once(end).unwrap_or((rest, ""));
        if !text.trim().is_empty() {
            found.push(Statement::Text(text.trim()));
        }
        rest = after.trim_start();
    }
    found
}

/// Notes registers and variables of a kernel.
fn declare(text: &str, scope: &mut Scope, kernel: &mut Kernel) -> Result<(), Error> {
    let place = || format!("{}: {text}", kernel.name);
    match text.split_whitespace().next() {
        Some(".reg") => {
            let names = text.split_whitespace().skip(2).collect::<String>();
            for name in names.split(',') {
                scope.declare(name).map_err(|problem| Error::new(place(), problem))?;
            }
        }
        Some(".shared" | ".local") => {
            let variable = Variable::parse(text)?;
            let symbol = match variable.space {
                "shared" => Symbol::Shared(variable.place(&mut kernel.shared)),
                _ => Symbol::Local(variable.place(&mut kernel.local)),
            };
            scope.symbols.insert(variable.name, symbol);
        }
        Some(".loc" | ".pragma") => {}
        _ => {
            return Err(Error::new(
                place(),
                "found an unknown directive, expected .reg, .shared, .local, .loc or .pragma",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_places_and_values() {
        let mut used = 3;
        let variable = Variable::parse(".shared .align 16 .b8 x[3][4]").unwrap();
        assert_eq!((variable.place(&mut used), used, variable.name.as_str()), (16, 28, "x"));
        let variable = Variable::parse(".visible .global .align 4 .u32 y[3] = {1, 0x102}").unwrap();
        assert_eq!(variable.content, [1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        let variable = Variable::parse(".extern .shared .align 16 .b8 z[]").unwrap();
        assert_eq!((variable.place(&mut used), used), (DYNAMIC_SHARED, 28));
        let error = Variable::parse(".global .b8 x[n]").unwrap_err().to_string();
        assert_eq!(error, ".global .b8 x[n]: found no size, expected numbers");
    }

    #[test]
    fn bodies_are_taken_apart() {
        let body = "\n.reg .b32 %r<2>;\n.loc 1 2 3\n$L1:\n { .reg .b16 t;\n mov.b32 {t, %r1}, %r0; }\n@%p0 bra $L1;\n";
        let text = |text| Statement::Text(text);
        assert_eq!(
            statements(body),
            [
                text(".reg .b32 %r<2>"),
                text(".loc 1 2 3"),
                Statement::Label("$L1"),
                Statement::Open,
                text(".reg .b16 t"),
                text("mov.b32 {t, %r1}, %r0"),
                Statement::Close,
                text("@%p0 bra $L1"),
            ]
        );
    }
}
