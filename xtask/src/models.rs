//! `cargo xtask models`: lists the supported families and their presets, read from the sources of mlxcel-models.
//!
//! A family's name and file come from the registry, its description from the first line of that file. A preset's family
//! is the `model_type` of its config.json.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Deserialize;

use crate::{shell, workspace::Workspace};

const REGISTRY: &str = "models/src/family.rs";
const PRESETS: &str = "models/presets";
const HEADER: [&str; 3] = ["family", "what it is", "presets"];

/// The options of `cargo xtask models`.
#[derive(Args)]
pub(crate) struct Models {
    /// Print the table of models/README.md, not one aligned for a terminal
    #[arg(long)]
    markdown: bool,
}

/// A family of models.
#[derive(Debug, PartialEq)]
struct Family {
    /// Hugging Face's `model_type`.
    name: String,
    description: String,
    /// Sorted by name.
    presets: Vec<String>,
}

/// The field of a preset's config.json that names its family.
#[derive(Deserialize)]
struct Config {
    model_type: String,
}

/// Prints the families.
pub(crate) fn models(workspace: &Workspace, models: &Models) -> Result<()> {
    if models.markdown {
        return shell::print(&markdown(&workspace.root)?);
    }
    let row = |family: Family| vec![family.name, family.description, family.presets.join(", ")];
    let header = HEADER.map(str::to_owned).to_vec();
    let rows: Vec<_> = [header].into_iter().chain(families(&workspace.root)?.into_iter().map(row)).collect();
    shell::print(&shell::table(&rows))
}

/// Returns the table of models/README.md.
pub(crate) fn markdown(root: &Path) -> Result<String> {
    let mut text = format!("| {} |\n|---|---|---|\n", HEADER.join(" | "));
    for Family { name, description, presets } in families(root)? {
        let presets: Vec<_> = presets.iter().map(|preset| format!("`{preset}`")).collect();
        text.push_str(&format!("| `{name}` | {description} | {} |\n", presets.join(", ")));
    }
    Ok(text)
}

/// Returns the sorted names of all presets.
pub(crate) fn preset_names(root: &Path) -> Result<Vec<String>> {
    Ok(presets(root)?.into_iter().map(|(name, _)| name).collect())
}

fn families(root: &Path) -> Result<Vec<Family>> {
    let mut families = Vec::new();
    for name in registered(&read(&root.join(REGISTRY))?)? {
        let file = format!("models/src/family/{name}.rs");
        let text = read(&root.join(&file))?;
        let Some(description) = text.lines().next().and_then(|line| line.strip_prefix("//! ")) else {
            bail!("{file}: found no `//!` in the first line, expected the family's description");
        };
        let description = description.strip_suffix('.').unwrap_or(description).to_owned();
        families.push(Family { name, description, presets: Vec::new() });
    }
    for (preset, name) in presets(root)? {
        let Some(family) = families.iter_mut().find(|family| family.name == name) else {
            bail!("{PRESETS}/{preset}.json: found model_type {name}, expected one that {REGISTRY} lists");
        };
        family.presets.push(preset);
    }
    Ok(families)
}

/// Returns the sorted presets with their families.
fn presets(root: &Path) -> Result<Vec<(String, String)>> {
    let folder = root.join(PRESETS);
    let mut presets = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let config: Config =
            serde_json::from_str(&read(&path)?).with_context(|| path.display().to_string())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        presets.push((name, config.model_type));
    }
    presets.sort();
    Ok(presets)
}

/// Returns the families in the registry: `families! { llama, mistral }`.
fn registered(source: &str) -> Result<Vec<String>> {
    let list = source.split_once("\nfamilies! {").and_then(|(_, rest)| rest.split_once('}'));
    let Some((list, _)) = list else {
        bail!("{REGISTRY}: found no list of families, expected `families! {{ … }}`");
    };
    Ok(list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_read_however_its_lines_are_broken() {
        for source in ["\nfamilies! {\n    a,\n    c_d,\n}\n", "x!{}\nfamilies! { a, c_d } b {}"] {
            assert_eq!(registered(source).unwrap(), ["a", "c_d"]);
        }
        assert_eq!(
            registered("macro_rules! families {}").unwrap_err().to_string(),
            "models/src/family.rs: found no list of families, expected `families! { … }`"
        );
    }

    /// Makes a workspace with one family and one preset.
    fn workspace(file: &str, model_type: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(REGISTRY, "\nfamilies! { a }");
        write("models/src/family/a.rs", file);
        write("models/presets/a-1b.json", &format!("{{\"model_type\": \"{model_type}\", \"x\": 1}}"));
        folder
    }

    #[test]
    fn the_first_line_of_the_file_describes_the_family() {
        let folder = workspace("//! A: with b.\n//!\n//! More.\n", "a");
        assert_eq!(
            markdown(folder.path()).unwrap(),
            "| family | what it is | presets |\n|---|---|---|\n| `a` | A: with b | `a-1b` |\n"
        );
        assert_eq!(
            markdown(workspace("use x;\n", "a").path()).unwrap_err().to_string(),
            "models/src/family/a.rs: found no `//!` in the first line, expected the family's description"
        );
        assert_eq!(
            markdown(workspace("//! A.\n", "c").path()).unwrap_err().to_string(),
            "models/presets/a-1b.json: found model_type c, expected one that models/src/family.rs lists"
        );
    }

    #[test]
    fn the_committed_families_are_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let families = families(root).unwrap();
        let llama = families.iter().find(|family| family.name == "llama").unwrap();
        assert!(llama.description.starts_with("Llama "), "{}", llama.description);
        assert!(llama.presets.iter().any(|preset| preset == "llama-3.2-1b"));
        assert_eq!(
            families.iter().map(|family| family.presets.len()).sum::<usize>(),
            preset_names(root).unwrap().len()
        );
    }
}
