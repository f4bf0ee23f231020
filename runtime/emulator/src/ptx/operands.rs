//! Operands as they are written.

use std::collections::HashMap;

use super::instruction::{Address, Operand, Register, Special};

/// A name that is no register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    Global(u64),
    Shared(u64),
    Local(u64),
    Parameter(u64),
}

impl Symbol {
    /// Returns its address in its own space.
    fn address(self) -> u64 {
        let (Self::Global(at) | Self::Shared(at) | Self::Local(at) | Self::Parameter(at)) = self;
        at
    }
}

/// The names that instructions of a kernel know.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) symbols: HashMap<String, Symbol>,
    /// Prefixes such as `%r`, with first registers and counts. Of equal ones the last is meant, as among names.
    prefixes: Vec<(String, Register, usize)>,
    names: Vec<(String, Register)>,
    /// Prefixes and names of predicates.
    predicates: Vec<String>,
    /// How many prefixes, names and registers there were when each of the open scopes began.
    outer: Vec<[usize; 3]>,
    /// The registers of the open scopes. Others take the place of those of closed ones.
    used: usize,
    /// The most registers at once.
    pub(super) registers: usize,
}

impl Scope {
    pub(super) fn new(symbols: HashMap<String, Symbol>) -> Self {
        Self {
            symbols,
            prefixes: Vec::new(),
            names: Vec::new(),
            predicates: Vec::new(),
            outer: Vec::new(),
            used: 0,
            registers: 0,
        }
    }

    /// Begins an inner scope, whose registers others do not know.
    pub(super) fn enter(&mut self) {
        self.outer.push([self.prefixes.len(), self.names.len(), self.used]);
    }

    /// Ends an inner scope.
    pub(super) fn leave(&mut self) {
        let Some([prefixes, names, used]) = self.outer.pop() else { return };
        self.prefixes.truncate(prefixes);
        self.names.truncate(names);
        self.used = used;
    }

    /// Adds registers: `%r<26>`, or one by its name.
    pub(super) fn declare(&mut self, text: &str) -> Result<(), String> {
        let count = match text.split_once('<') {
            Some((prefix, count)) => {
                let count = count.trim_end_matches('>').parse().ok().filter(|count| *count <= 1 << 20);
                let count = count.ok_or_else(|| format!("found {text}, expected a number of registers"))?;
                self.prefixes.push((prefix.to_owned(), self.used, count));
                count
            }
            None => {
                self.names.push((text.to_owned(), self.used));
                1
            }
        };
        self.used += count;
        self.registers = self.registers.max(self.used);
        Ok(())
    }

    /// Notes that registers are predicates: `%p<4>`, or one by its name.
    pub(super) fn declare_predicates(&mut self, text: &str) {
        self.predicates.push(text.split('<').next().unwrap_or_default().to_owned());
    }

    /// Returns whether a register is a predicate.
    pub(super) fn is_predicate(&self, name: &str) -> bool {
        let name = name.trim_start_matches('!');
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        self.register(name).is_ok() && self.predicates.iter().any(|known| known == prefix || known == name)
    }

    /// Returns the register with a name.
    pub(super) fn register(&self, name: &str) -> Result<Register, String> {
        if let Some((_, register)) = self.names.iter().rev().find(|(known, _)| known == name) {
            return Ok(*register);
        }
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let prefix = self.prefixes.iter().rev().find(|(known, ..)| *known == name[..digits]);
        let found = prefix.zip(name[digits..].parse::<usize>().ok());
        let found =
            found.filter(|((.., count), index)| index < count).map(|((_, first, _), index)| first + index);
        found.ok_or_else(|| format!("found {name}, expected a declared register"))
    }

    /// Returns the register of a result; `_` is not wanted.
    pub(super) fn result(&self, name: &str) -> Result<Option<Register>, String> {
        if name == "_" { Ok(None) } else { self.register(name).map(Some) }
    }

    /// Returns what an instruction reads.
    pub(super) fn operand(&self, text: &str) -> Result<Operand, String> {
        if let Some(value) = constant(text) {
            return Ok(Operand::Constant(value));
        }
        if let Some(special) = special(text) {
            return Ok(Operand::Special(special));
        }
        if let Some(symbol) = self.symbols.get(text) {
            return Ok(Operand::Constant(symbol.address()));
        }
        self.register(text).map(Operand::Register)
    }

    /// Returns a place: `[%rd1+-8]`, `[name+4]`, `[%rd1]`.
    pub(super) fn address(&self, text: &str) -> Result<Address, String> {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.ok_or_else(|| format!("found {text}, expected a place such as [%rd1+8]"))?;
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        let offset =
            constant(offset.trim()).ok_or_else(|| format!("found {text}, expected a number after `+`"))?;
        Ok(match self.operand(base.trim())? {
            Operand::Register(register) => Address { base: Some(register), offset },
            Operand::Constant(base) => Address { base: None, offset: base.wrapping_add(offset) },
            Operand::Special(_) => return Err(format!("found {text}, expected a register or a name")),
        })
    }
}

/// Returns the bits of a number: `-4`, `0x10`, `0f3F800000`, `0d3FF0000000000000`.
pub(super) fn constant(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
        return (digits.len() == 8).then(|| u64::from_str_radix(digits, 16).ok())?;
    }
    if let Some(digits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
        return (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?;
    }
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let digits = digits.trim_end_matches('U');
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative { value.wrapping_neg() } else { value })
}

fn special(text: &str) -> Option<Special> {
    let dimension = |text: &str| ["x", "y", "z"].iter().position(|name| *name == text);
    Some(match text.strip_prefix('%')?.split_once('.') {
        Some(("tid", d)) => Special::Thread(dimension(d)?),
        Some(("ntid", d)) => Special::BlockSize(dimension(d)?),
        Some(("ctaid", d)) => Special::Block(dimension(d)?),
        Some(("nctaid", d)) => Special::GridSize(dimension(d)?),
        None if text == "%laneid" => Special::Lane,
        None if text == "%warpid" => Special::Warp,
        _ => return None,
    })
}

/// Separates operands at commas outside of braces and brackets.
pub(super) fn separated(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found
}

/// Returns the parts of `{a, b}`, or the one operand that has no braces.
pub(super) fn parts(text: &str) -> Vec<&str> {
    match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(inner) => separated(inner),
        None => vec![text],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bits() {
        assert_eq!(constant("0f3F800000"), Some(u64::from(1.0_f32.to_bits())));
        assert_eq!(constant("0d3FF0000000000000"), Some(1.0_f64.to_bits()));
        assert_eq!((constant("-1"), constant("0x1F"), constant("4U")), (Some(u64::MAX), Some(31), Some(4)));
        assert_eq!((constant("%r1"), constant("x")), (None, None));
    }

    #[test]
    fn operands_are_registers_places_and_names() {
        let mut scope = Scope::new([("v".to_owned(), Symbol::Shared(64))].into());
        scope.declare("%p<2>").unwrap();
        scope.declare("%rd<3>").unwrap();
        scope.declare("tmp").unwrap();
        assert_eq!(scope.register("%rd2"), Ok(4));
        assert_eq!(scope.register("tmp"), Ok(5));
        assert!(scope.register("%rd3").unwrap_err().starts_with("found %rd3, expected"));
        assert_eq!(scope.address("[%rd1+-8]"), Ok(Address { base: Some(3), offset: 8_u64.wrapping_neg() }));
        assert_eq!(scope.address("[v+4]"), Ok(Address { base: None, offset: 68 }));
        scope.enter();
        scope.declare("tmp").unwrap();
        assert_eq!((scope.register("tmp"), scope.register("%rd2")), (Ok(6), Ok(4)));
        scope.leave();
        assert_eq!((scope.register("tmp"), scope.registers), (Ok(5), 7));
        scope.enter();
        scope.declare("other<1>").unwrap();
        assert_eq!((scope.register("other0"), scope.registers), (Ok(6), 7));
        scope.leave();
        assert!(scope.register("other0").is_err());
        assert_eq!(scope.operand("%ctaid.y"), Ok(Operand::Special(Special::Block(1))));
        assert_eq!(separated("{%r1, %r2}, [%rd1+4], 5"), ["{%r1, %r2}", "[%rd1+4]", "5"]);
        assert_eq!(parts("{%r1, _}"), ["%r1", "_"]);
    }
}
