//! Where the items that a path names are defined.

use super::{
    source::{Crate, Meaning},
    visit::NamePath,
};

/// Something that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// An item, by the module that defines it and its name.
    Item(usize, String),
    Module(usize),
}

/// Returns the modules that define the items at the start of `path`, with the items' names.
///
/// A path that ends at a module takes nothing of it yet: the paths that go on from there do.
pub(super) fn definitions(source: &Crate, from: usize, path: &NamePath) -> Vec<(usize, String)> {
    let targets = Resolver { source, visited: Vec::new() }.resolve(from, &path.0);
    let item = |target| match target {
        Target::Item(module, name) => Some((module, name)),
        Target::Module(_) => None,
    };
    targets.into_iter().filter_map(item).collect()
}

struct Resolver<'a> {
    source: &'a Crate,
    /// Names that were looked up already: imports may lead round in a circle.
    visited: Vec<(usize, String)>,
}

impl Resolver<'_> {
    fn resolve(&mut self, from: usize, path: &[String]) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return vec![Target::Module(from)] };
        match first.as_str() {
            "crate" => self.walk(0, rest),
            "self" => self.resolve_below(from, rest),
            "super" => match self.source.modules[from].parent {
                Some(parent) => self.resolve_below(parent, rest),
                None => Vec::new(),
            },
            _ => self.walk(from, path),
        }
    }

    /// Goes on after `self` or `super`, which may be followed by another `super`.
    fn resolve_below(&mut self, module: usize, path: &[String]) -> Vec<Target> {
        match path.first().map(String::as_str) {
            Some("super") => self.resolve(module, path),
            _ => self.walk(module, path),
        }
    }

    fn walk(&mut self, module: usize, path: &[String]) -> Vec<Target> {
        let Some((name, rest)) = path.split_first() else { return vec![Target::Module(module)] };
        let found = self.look_up(module, name);
        let mut targets = Vec::new();
        for target in &found {
            match target {
                Target::Module(child) if !rest.is_empty() => targets.extend(self.walk(*child, rest)),
                // A function of the same name as a module has nothing below it.
                Target::Item(..) if !rest.is_empty() && has_module(&found) => {}
                target => targets.push(target.clone()),
            }
        }
        targets
    }

    /// Finds what the name stands for in the module. Names come before what is imported with `*`.
    fn look_up(&mut self, module: usize, name: &str) -> Vec<Target> {
        let key = (module, name.to_owned());
        if self.visited.contains(&key) {
            return Vec::new();
        }
        self.visited.push(key);
        let source = self.source;
        let mut found = Vec::new();
        for meaning in source.modules[module].names.get(name).into_iter().flatten() {
            match meaning {
                Meaning::Item(definer) => found.push(Target::Item(*definer, name.to_owned())),
                Meaning::Module(child) => found.push(Target::Module(*child)),
                Meaning::Import(path) => found.extend(self.resolve(module, &path.0)),
            }
        }
        if found.is_empty() {
            for glob in &source.modules[module].globs {
                for target in self.resolve(module, &glob.0) {
                    if let Target::Module(imported) = target {
                        found.extend(self.look_up(imported, name));
                    }
                }
            }
        }
        self.visited.pop();
        found
    }
}

fn has_module(targets: &[Target]) -> bool {
    targets.iter().any(|target| matches!(target, Target::Module(_)))
}
