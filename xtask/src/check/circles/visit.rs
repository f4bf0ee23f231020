//! The imports and paths in a module's code.

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Item, Meta, UseTree, Visibility,
    visit::{self, Visit},
};

/// The segments of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamePath(pub(super) Vec<String>);

/// What a module names.
#[derive(Default)]
pub(super) struct References {
    /// Names and what they stand for, re-exports included.
    pub(super) imports: Vec<(String, NamePath)>,
    pub(super) globs: Vec<NamePath>,
    /// Private imports, and every path in the code.
    pub(super) references: Vec<NamePath>,
}

impl References {
    /// Collects what the items name, child modules and tests excepted.
    pub(super) fn of(items: &[Item]) -> Self {
        let mut references = Self::default();
        for item in items {
            references.visit_item(item);
        }
        references
    }

    /// Collects the paths among the tokens of a macro, which need not be Rust's syntax.
    pub(super) fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |index: usize, c: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            index += 1;
            match token {
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Literal(literal) => self.scan_literal(&literal.to_string()),
                TokenTree::Ident(ident) if !is_continued(index, &is) => {
                    let mut segments = vec![ident.to_string()];
                    while is(index, ':') && is(index + 1, ':') {
                        let Some(TokenTree::Ident(ident)) = tokens.get(index + 2) else { break };
                        segments.push(ident.to_string());
                        index += 3;
                    }
                    self.references.push(NamePath(segments));
                }
                _ => {}
            }
        }
    }

    /// Reads attributes such as serde's `default = "crate::module::function"`.
    fn scan_literal(&mut self, literal: &str) {
        let path = literal.trim_matches('"');
        if ["crate::", "super::", "self::"].iter().any(|start| path.starts_with(start)) {
            self.references.push(NamePath(path.split("::").map(str::to_owned).collect()));
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_private: bool) {
        let path = |name: &syn::Ident| NamePath([before, &[name.to_string()]].concat());
        match tree {
            UseTree::Path(tree) => {
                self.import(&tree.tree, &path(&tree.ident).0, is_private);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, is_private);
                }
            }
            UseTree::Glob(_) => {
                let path = NamePath(before.to_vec());
                if is_private {
                    self.references.push(path.clone());
                }
                self.globs.push(path);
            }
            UseTree::Name(leaf) if leaf.ident == "self" => {
                let name = before.last().cloned().unwrap_or_default();
                self.name(name, NamePath(before.to_vec()), is_private);
            }
            UseTree::Name(leaf) => self.name(leaf.ident.to_string(), path(&leaf.ident), is_private),
            UseTree::Rename(leaf) => self.name(leaf.rename.to_string(), path(&leaf.ident), is_private),
        }
    }

    fn name(&mut self, name: String, path: NamePath, is_private: bool) {
        if is_private {
            self.references.push(path.clone());
        }
        if name != "_" {
            self.imports.push((name, path));
        }
    }
}

/// Returns whether the word that ends before `index` is a field, a method or the rest of another path.
fn is_continued(index: usize, is: &impl Fn(usize, char) -> bool) -> bool {
    let Some(before) = index.checked_sub(2) else { return false };
    let is_field = is(before, '.') && before.checked_sub(1).is_none_or(|earlier| !is(earlier, '.'));
    is_field || is(before, '\'') || is(before, ':') && before.checked_sub(1).is_some_and(|two| is(two, ':'))
}

impl<'ast> Visit<'ast> for References {
    fn visit_item(&mut self, item: &'ast Item) {
        // Child modules are modules of their own.
        if !is_test(item) && !matches!(item, Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[], matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string());
            self.references.push(NamePath(segments.collect()));
        }
        visit::visit_path(self, path);
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {
        // `pub(in crate::a)` takes nothing of the module.
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.visit_path(&invocation.path);
        self.scan(invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.scan(list.tokens.clone());
        }
    }
}

/// Returns whether the item is compiled for tests alone.
pub(super) fn is_test(item: &Item) -> bool {
    is_for_tests(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    })
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all") && condition.contains("test")
        }
        _ => false,
    })
}
