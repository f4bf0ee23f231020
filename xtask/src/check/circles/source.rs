//! The modules of a crate, read from its files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use syn::{Attribute, Expr, Item, ItemMacro, ItemMod, Lit, Meta};

use super::visit::{NamePath, References, is_test};

/// The modules of a crate; the first is its root.
pub(super) struct Crate {
    pub(super) modules: Vec<Module>,
}

/// One module, in a file of its own or inline in its parent's.
pub(super) struct Module {
    /// The file's path below the workspace.
    pub(super) file: String,
    pub(super) parent: Option<usize>,
    /// What each name stands for here. A function may share its name with a module.
    pub(super) names: BTreeMap<String, Vec<Meaning>>,
    /// The modules whose names are all imported.
    pub(super) globs: Vec<NamePath>,
    /// Every path that the code uses; those of re-exports are not among them.
    pub(super) references: Vec<NamePath>,
}

pub(super) enum Meaning {
    /// An item of the module with this index.
    Item(usize),
    /// The child with this index.
    Module(usize),
    Import(NamePath),
}

/// A module's file, and the folder of its children. Both are below the workspace.
#[derive(Clone)]
struct Place {
    file: PathBuf,
    folder: PathBuf,
}

impl Crate {
    /// Reads the crate whose root is `file`, a path below `workspace`.
    pub(super) fn read(workspace: &Path, file: &str) -> Result<Self> {
        let file = PathBuf::from(file);
        let place = Place { folder: folder_of(&file).to_path_buf(), file };
        let mut reader = Reader { workspace, modules: Vec::new() };
        reader.read_file(&place, None)?;
        Ok(Self { modules: reader.modules })
    }
}

struct Reader<'a> {
    workspace: &'a Path,
    modules: Vec<Module>,
}

impl Reader<'_> {
    fn read_file(&mut self, place: &Place, parent: Option<usize>) -> Result<usize> {
        let name = || place.file.display().to_string();
        let text = fs::read_to_string(self.workspace.join(&place.file)).with_context(name)?;
        let file = syn::parse_file(&text).with_context(name)?;
        self.read_module(&file.items, place, parent)
    }

    fn read_module(&mut self, items: &[Item], place: &Place, parent: Option<usize>) -> Result<usize> {
        let index = self.modules.len();
        let References { imports, globs, references } = References::of(items);
        let file = place.file.display().to_string();
        self.modules.push(Module { file, parent, names: BTreeMap::new(), globs, references });
        for (name, path) in imports {
            self.define(index, name, Meaning::Import(path));
        }
        for item in items.iter().filter(|item| !is_test(item)) {
            match item {
                Item::Mod(item) if item.ident == "tests" => {}
                Item::Mod(item) => {
                    let child = self.read_child(item, place, index)?;
                    self.define(index, item.ident.to_string(), Meaning::Module(child));
                }
                Item::Macro(item) if item.ident.is_none() => self.read_declared(item, place, index)?,
                item => {
                    if let Some(name) = name_of(item) {
                        self.define(index, name.clone(), Meaning::Item(index));
                        if is_exported_macro(item) && index != 0 {
                            self.define(0, name, Meaning::Item(index));
                        }
                    }
                }
            }
        }
        Ok(index)
    }

    fn read_child(&mut self, item: &ItemMod, place: &Place, parent: usize) -> Result<usize> {
        let name = item.ident.to_string();
        if let Some((_, items)) = &item.content {
            let place = Place { file: place.file.clone(), folder: place.folder.join(&name) };
            return self.read_module(items, &place, Some(parent));
        }
        let place = match path_attribute(&item.attrs) {
            Some(path) => {
                let file = normalized(&folder_of(&place.file).join(path));
                Place { folder: folder_of(&file).to_path_buf(), file }
            }
            None => match self.find(&name, place) {
                Some(place) => place,
                None => bail!("{}: found no file for `mod {name}`", place.file.display()),
            },
        };
        self.read_file(&place, Some(parent))
    }

    /// Reads the modules that a macro declares: words in its invocation that are names of files.
    fn read_declared(&mut self, item: &ItemMacro, place: &Place, parent: usize) -> Result<()> {
        let mut reader = References::default();
        reader.scan(item.mac.tokens.clone());
        for NamePath(segments) in reader.references {
            let name = &segments[0];
            if self.modules[parent].names.contains_key(name) {
                continue;
            }
            if let Some(place) = self.find(name, place) {
                let child = self.read_file(&place, Some(parent))?;
                self.define(parent, name.clone(), Meaning::Module(child));
            }
        }
        Ok(())
    }

    /// Finds the file of a child module.
    fn find(&self, name: &str, place: &Place) -> Option<Place> {
        let folder = place.folder.join(name);
        let files = [place.folder.join(format!("{name}.rs")), folder.join("mod.rs")];
        let file = files.into_iter().find(|file| self.workspace.join(file).is_file())?;
        Some(Place { file, folder })
    }

    fn define(&mut self, module: usize, name: String, meaning: Meaning) {
        self.modules[module].names.entry(name).or_default().push(meaning);
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Returns the path without `..`, so that a file has one name only.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(path) = &value.lit else { return None };
    Some(path.value())
}

fn is_exported_macro(item: &Item) -> bool {
    matches!(item, Item::Macro(item) if item.attrs.iter().any(|a| a.path().is_ident("macro_export")))
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
