//! The length of Rust functions.

use syn::{
    Block, ImplItemFn, ItemFn, Signature, TraitItemFn,
    spanned::Spanned as _,
    visit::{self, Visit},
};

/// A function of more lines is refused, tests included.
const LINES: usize = 80;

/// Returns a line for each function that is too long. Text that is no Rust is left to the compiler.
pub(super) fn check(file: &str, text: &str) -> Vec<String> {
    let mut functions = Functions { file, found: Vec::new() };
    if let Ok(source) = syn::parse_file(text) {
        functions.visit_file(&source);
    }
    functions.found
}

struct Functions<'a> {
    file: &'a str,
    found: Vec<String>,
}

impl Functions<'_> {
    /// Counts from the line of the name's `fn` to that of the closing brace.
    fn measure(&mut self, signature: &Signature, block: &Block) {
        let start = signature.span().start().line;
        let lines = block.span().end().line - start + 1;
        if lines > LINES {
            let name = &signature.ident;
            self.found.push(format!(
                "{}:{start}: found {lines} lines in the function {name}, expected at most {LINES}",
                self.file
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_functions_are_named_with_their_lines() {
        let body = |lines| format!("{{\n{}}}\n", "    f();\n".repeat(lines));
        assert_eq!(check("a.rs", &format!("// x\n/// y\n#[test]\nfn short() {}", body(78))), [""; 0]);
        let long = format!("// x\n/// y\n#[test]\nfn long() {}", body(79));
        assert_eq!(
            check("a.rs", &long),
            ["a.rs:4: found 81 lines in the function long, expected at most 80"]
        );
        let inside =
            format!("trait T {{\nfn t() {}}}\nmod m {{ impl T {{\nfn i() {}}} }}", body(80), body(80));
        assert_eq!(
            check("a.rs", &inside),
            [
                "a.rs:2: found 82 lines in the function t, expected at most 80",
                "a.rs:86: found 82 lines in the function i, expected at most 80"
            ]
        );
    }
}
