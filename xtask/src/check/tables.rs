//! The tables in the crates' READMEs that are generated.
//!
//! Each stands between `<!-- generated: NAME -->` and `<!-- end -->`.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::conformance;
use crate::{
    models,
    toolchain::{part::Supply, parts::PARTS},
};

/// Compares the generated tables with the committed ones, or writes them with `fix`.
pub(super) fn check(root: &Path, fix: bool) -> Result<Vec<String>> {
    let documents = [
        ("compiler-driver/README.md", vec![("targets", targets(root)?)]),
        ("emitter/README.md", vec![("conformance", conformance::table(root)?)]),
        ("models/README.md", vec![("models", models::markdown(root)?)]),
        ("xtask/README.md", vec![("parts", parts()), ("variables", variables())]),
    ];
    let mut found = Vec::new();
    for (file, tables) in documents {
        let path = root.join(file);
        let text = fs::read_to_string(&path).context(file)?;
        let mut fresh = text.clone();
        for (name, body) in tables {
            fresh = replace(file, &fresh, name, &body)?;
        }
        if fresh == text {
            continue;
        }
        if fix {
            fs::write(&path, fresh).context(file)?;
        } else {
            found.push(format!(
                "{file}: found an outdated generated table, expected the one that cargo xtask tidy --fix writes"
            ));
        }
    }
    Ok(found)
}

/// Replaces the table between the marks.
fn replace(file: &str, text: &str, name: &str, body: &str) -> Result<String> {
    let (start, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end -->");
    let Some((before, rest)) = text.split_once(&start) else {
        bail!("{file}: found no {}, expected one", start.trim());
    };
    let Some((_, after)) = rest.split_once(end) else {
        bail!("{file}: found no {end} after {}, expected one", start.trim());
    };
    Ok(format!("{before}{start}{body}{end}{after}"))
}

/// The fields of a target's file that the table shows.
#[derive(Deserialize)]
struct Target {
    description: String,
    driver: String,
    run: String,
}

fn targets(root: &Path) -> Result<String> {
    let folder = root.join("compiler-driver/targets");
    let mut rows = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let target: Target = toml::from_str(&text).with_context(|| path.display().to_string())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        rows.push(format!("| `{name}` | {} | {} | {} |\n", target.description, target.driver, target.run));
    }
    rows.sort();
    Ok(format!("| target | compiles for | driver | run by us on |\n|---|---|---|---|\n{}", rows.concat()))
}

fn parts() -> String {
    let mut text = String::from("| part | expected | supplied by |\n|---|---|---|\n");
    for part in PARTS {
        let source = match part.supply {
            Supply::Debian(packages) => format!("apt: `{}`", packages.join(" ")),
            Supply::Unpacked(package) => format!("apt: `{package}`, unpacked: `.toolchain/{package}/`"),
            Supply::Wheels(name) => format!("PyPI, pinned in `xtask/toolchain.toml`: `.toolchain/{name}/`"),
            Supply::Venv(name) => format!("PyPI, pinned in `xtask/{name}.txt`: `.toolchain/{name}/`"),
            Supply::Cargo => "cargo".to_owned(),
        };
        text.push_str(&format!("| {} | {} | {source} |\n", part.name, part.expected()));
    }
    text
}

fn variables() -> String {
    let mut text = String::from("| variable | meaning |\n|---|---|\n");
    for variable in PARTS.iter().flat_map(|part| part.variables) {
        text.push_str(&format!("| `{}` | {} |\n", variable.name, variable.meaning));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_marks_is_replaced() {
        let text = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n<!-- end -->\n";
        assert_eq!(
            replace("a.md", text, "x", "new\n").unwrap(),
            "a\n<!-- generated: x -->\nnew\n<!-- end -->\nb\n<!-- end -->\n"
        );
        assert_eq!(
            replace("a.md", text, "y", "").unwrap_err().to_string(),
            "a.md: found no <!-- generated: y -->, expected one"
        );
    }
}
