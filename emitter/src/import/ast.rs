//! A program as it is written in MLIR's generic form.

use std::collections::{BTreeMap, HashMap};

/// A module.
#[derive(Debug, Default)]
pub(super) struct Module<'t> {
    /// Its functions in order.
    pub(super) functions: Vec<Function<'t>>,
    /// Values of aliases, by their names: `#loc1`.
    pub(super) aliases: HashMap<&'t str, &'t str>,
    /// Constants that attributes name, in hexadecimal digits with `0x` before them.
    pub(super) resources: HashMap<&'t str, &'t str>,
}

/// A function.
#[derive(Debug)]
pub(super) struct Function<'t> {
    pub(super) name: String,
    pub(super) is_public: bool,
    /// Attributes of the arguments, then of the results. Lists without any are empty.
    pub(super) argument_attributes: Vec<Attributes<'t>>,
    pub(super) result_attributes: Vec<Attributes<'t>>,
    pub(super) result_types: Vec<&'t str>,
    pub(super) body: Region<'t>,
}

/// Attributes by name, as text.
pub(super) type Attributes<'t> = BTreeMap<&'t str, &'t str>;

/// A region of one block.
#[derive(Debug, Default)]
pub(super) struct Region<'t> {
    pub(super) arguments: Vec<Argument<'t>>,
    /// Its ops. The last one ends it.
    pub(super) ops: Vec<Op<'t>>,
}

/// An argument of a region.
#[derive(Debug)]
pub(super) struct Argument<'t> {
    pub(super) value: &'t str,
    pub(super) ty: &'t str,
    pub(super) location: &'t str,
}

/// An op.
#[derive(Debug)]
pub(super) struct Op<'t> {
    pub(super) name: &'t str,
    /// Name of its results, and their number: `%2`, or `%2#0` and so on if there are several.
    pub(super) results: Option<&'t str>,
    pub(super) operands: Vec<&'t str>,
    pub(super) attributes: Attributes<'t>,
    pub(super) regions: Vec<Region<'t>>,
    pub(super) result_types: Vec<&'t str>,
    pub(super) location: &'t str,
}

impl<'t> Op<'t> {
    /// Returns the name of a result.
    pub(super) fn result(&self, index: usize) -> Option<String> {
        let name = self.results?;
        Some(if self.result_types.len() == 1 { name.to_owned() } else { format!("{name}#{index}") })
    }

    /// Returns an op with the same operands and types, another name and other attributes, and no regions.
    pub(super) fn renamed<'o>(&self, name: &'o str, attributes: Attributes<'o>) -> Op<'o>
    where
        't: 'o,
    {
        Op {
            name,
            results: self.results,
            operands: self.operands.clone(),
            attributes,
            regions: Vec::new(),
            result_types: self.result_types.clone(),
            location: self.location,
        }
    }

    /// Returns an attribute's text.
    pub(super) fn attribute(&self, name: &str) -> Option<&'t str> {
        self.attributes.get(name).copied()
    }
}

impl Module<'_> {
    /// Returns where an op stands in what its author wrote, `train.py:170`, if the program says that.
    pub(super) fn place(&self, location: &str) -> Option<String> {
        let mut text = location;
        // An alias can name others. A chain longer than this is a circle.
        for _ in 0..self.aliases.len().min(64) + 1 {
            if let Some(place) = file_and_line(text) {
                return Some(place);
            }
            let alias = text.find('#').map(|at| {
                let end = text[at + 1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                &text[at..end.map_or(text.len(), |end| at + 1 + end)]
            })?;
            text = self.aliases.get(alias)?;
        }
        None
    }

    /// Returns the name in a location: `loc("x")` or `loc("x"(…))`, and not `loc("file.py":1:2)`.
    pub(super) fn name_in(&self, location: &str) -> Option<String> {
        let text =
            self.aliases.get(location.strip_prefix("loc(")?.strip_suffix(')')?).copied().unwrap_or(location);
        let quoted = text.strip_prefix("loc(\"")?;
        let (name, rest) = quoted.split_at(quoted.find('"')?);
        (!name.is_empty() && !rest.starts_with("\":")).then(|| name.to_owned())
    }
}

/// Returns `file.py:3` for text with `"…/file.py":3:4` in it.
fn file_and_line(text: &str) -> Option<String> {
    let (before, after) = text.split_once("\":")?;
    let path = &before[before.rfind('"')? + 1..];
    let line: String = after.chars().take_while(char::is_ascii_digit).collect();
    let file = path.rsplit('/').next().unwrap_or(path);
    (!line.is_empty() && line != "0").then(|| format!("{file}:{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_aliases() {
        let aliases = [
            ("#loc1", "loc(\"/there/a/train.py\":170:4)"),
            ("#loc2", "loc(\"jit(step)/add\"(#loc1))"),
            ("#loc3", "loc(#loc3)"),
            ("#loc4", "loc(\"x\")"),
        ];
        let module = Module { aliases: aliases.into(), ..Module::default() };
        assert_eq!(module.place("loc(#loc2)").as_deref(), Some("train.py:170"));
        assert_eq!(module.place("loc(callsite(#loc2 at #loc9))").as_deref(), Some("train.py:170"));
        for nowhere in ["loc(unknown)", "loc(#loc3)", "loc(#loc4)", "loc(#loc5)", "loc(\"-\":0:0)"] {
            assert_eq!(module.place(nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn locations_of_files_are_no_names() {
        let module = Module { aliases: [("#loc1", "loc(\"y\")")].into(), ..Module::default() };
        for (text, name) in
            [("loc(\"x\")", "x"), ("loc(\"p['w']\"(\"a.py\":1:2))", "p['w']"), ("loc(#loc1)", "y")]
        {
            assert_eq!(module.name_in(text).as_deref(), Some(name));
        }
        for other in ["loc(\"a.py\":1:2)", "loc(unknown)", "loc(\"\")", ""] {
            assert_eq!(module.name_in(other), None, "{other}");
        }
    }
}
