//! Modules, variables and kernels as they are written.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::AtomicU8,
};

use super::{
    decode::decode,
    instruction::Work,
    module::{Error, Global, Kernel, Module},
    operands::{Scope, Symbol},
    registers,
    target::Target,
    variable::Variable,
};

/// The most static shared memory of a kernel.
const SHARED_MAX: usize = 48 << 10;

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
    let mut found = Module { kernels: BTreeMap::new(), globals: Vec::new(), target: Target::default() };
    let mut symbols = HashMap::new();
    let mut shared = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if [".version", ".target", ".address_size", ".file"].iter().any(|word| rest.starts_with(word)) {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            found.target.read(line.trim()).map_err(|problem| Error::new("module", problem))?;
            rest = after.trim_start();
            continue;
        }
        let end = rest
            .find([';', '{', '='])
            .ok_or_else(|| Error::new("module", "found no end, expected `;` or `}`"))?;
        let head = &rest[..end];
        if head.contains(".entry") {
            found.target.check_given().map_err(|problem| Error::new("module", problem))?;
            let (body, after) = body(&rest[end..])?;
            let kernel = kernel((head, body), &symbols, &shared, found.target)?;
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

/// Reads a kernel: `.visible .entry name( parameters ) .maxntid 32, 1, 1`, and its body. Of the module's variables in shared memory
/// it has those that it names.
fn kernel(
    (head, body): (&str, &str),
    symbols: &HashMap<String, Symbol>,
    shared: &[Variable<'_>],
    target: Target,
) -> Result<Kernel, Error> {
    let after = head.split(".entry").nth(1).unwrap_or_default();
    let (name, parameters) =
        after.split_once('(').ok_or_else(|| Error::new(head.trim(), "found no parameters, expected `(`"))?;
    let parameters = parameters.split(')').next().unwrap_or_default();
    let mut kernel = Kernel { name: name.trim().to_owned(), ..Kernel::default() };
    let mut scope = Scope::new(symbols.clone());
    for variable in shared.iter().filter(|variable| body.contains(&variable.name)) {
        let place = kernel.place_shared(variable);
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
    code(body, &mut scope, &mut kernel, target)?;
    let ends = kernel
        .code
        .last()
        .is_some_and(|last| last.guard.is_none() && matches!(last.work, Work::Return | Work::Branch(_)));
    if !ends {
        return Err(Error::new(&kernel.name, "found no return at the end, expected one"));
    }
    if kernel.shared_needed > SHARED_MAX {
        let found = kernel.shared_needed;
        let problem = format!("found {found} bytes of shared memory, expected at most {SHARED_MAX}");
        return Err(Error::new(&kernel.name, problem));
    }
    kernel.threads_max =
        threads(head, ".maxntid").map(|sizes| sizes.iter().map(|size| *size as usize).product());
    kernel.threads_needed = threads(head, ".reqntid");
    kernel.registers = registers::allocate(&mut kernel.code, scope.registers);
    Ok(kernel)
}

impl Kernel {
    fn place_shared(&mut self, variable: &Variable<'_>) -> Symbol {
        variable.place(&mut self.shared_needed);
        Symbol::Shared(variable.place_exactly(&mut self.shared))
    }
}

/// Returns the threads that a directive of a kernel says: `.maxntid 32, 1, 1`.
fn threads(head: &str, directive: &str) -> Option<[u32; 3]> {
    let numbers = head.split(directive).nth(1)?.split('.').next()?;
    let mut sizes = [1; 3];
    for (size, number) in sizes.iter_mut().zip(numbers.split([',', '\n']).map(str::trim)) {
        *size = number.parse().unwrap_or(1);
    }
    Some(sizes)
}

/// Reads the body of a kernel.
fn code(body: &str, scope: &mut Scope, kernel: &mut Kernel, target: Target) -> Result<(), Error> {
    let statements = statements(body);
    let mut targets = HashMap::new();
    let mut count = 0;
    for statement in &statements {
        match statement {
            Statement::Label(label) if targets.insert(*label, count).is_some() => {
                return Err(Error::new(&kernel.name, format!("found the label {label} twice, expected one")));
            }
            Statement::Text(text) if !text.starts_with('.') => count += 1,
            _ => {}
        }
    }
    if let Some((label, _)) = targets.iter().find(|(_, target)| **target == count) {
        return Err(Error::new(
            &kernel.name,
            format!("found nothing after {label}, expected an instruction"),
        ));
    }
    for statement in &statements {
        match statement {
            Statement::Open => scope.enter(),
            Statement::Close => scope.leave(),
            Statement::Label(_) => {}
            Statement::Text(text) if text.starts_with('.') => declare(text, scope, kernel)?,
            Statement::Text(text) => {
                let instruction = decode(text, scope, &targets, target)
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
            let are_predicates = text.split_whitespace().nth(1) == Some(".pred");
            for name in names.split(',') {
                if are_predicates {
                    scope.declare_predicates(name);
                }
                scope.declare(name).map_err(|problem| Error::new(place(), problem))?;
            }
        }
        Some(".shared" | ".local") => {
            let variable = Variable::parse(text)?;
            let symbol = match variable.space {
                "shared" => kernel.place_shared(&variable),
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
