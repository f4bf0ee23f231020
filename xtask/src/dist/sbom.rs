//! The SBOM of a release in CycloneDX's format: what is in each program and library.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::build::Build;
use crate::{
    shell,
    toolchain::{iree::IREE_VERSION, part::LLVM_PREFIX},
};

/// What a release consists of, the package of each, and the features it is built with.
const PARTS: [(&str, &str, &str); 8] = [
    ("mlxcel-run", "mlxcel-runtime", ""),
    ("mlxcel-pack", "mlxcel-runtime", ""),
    ("mlxcel-bench", "mlxcel-runtime", ""),
    ("mlxcel-serve", "mlxcel-serve", "--features mlxcel-serve/otel"),
    ("mlxcel-bundle", "mlxcel-artifacts", ""),
    ("mlxcel-compile", "mlxcel-compiler-driver", ""),
    ("libmlxcel", "mlxcel-capi", ""),
    ("mlxcel._native", "mlxcel-python", ""),
];

/// The parts that MLIR is linked into, and those without IREE's runtime.
const WITH_MLIR: &str = "mlxcel-compile";
const WITHOUT_IREE: [&str; 2] = ["mlxcel-bundle", "mlxcel-compile"];

/// A package as Cargo.lock has it.
#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// A library that is linked into a part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Library {
    purl: String,
    name: String,
    version: String,
    license: String,
}

impl Library {
    /// Reads a line of cargo tree: `name v1.2.3 (…)|license`. Packages of the workspace are no libraries of others.
    fn of_line(line: &str) -> Option<Self> {
        let (package, license) = line.split_once('|')?;
        let mut words = package.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.trim_start_matches('v'));
        if words.any(|word| word.starts_with("(/")) {
            return None;
        }
        // An old way to write it, which SPDX does not have.
        let license = license.replace('/', " OR ");
        Some(Self::new(&format!("pkg:cargo/{name}@{version}"), name, version, &license))
    }

    fn new(purl: &str, name: &str, version: &str, license: &str) -> Self {
        let [purl, name, version, license] = [purl, name, version, license].map(str::to_owned);
        Self { purl, name, version, license }
    }

    /// Returns the libraries in C of the IREE runtime.
    fn of_iree() -> [Self; 2] {
        let iree = format!("pkg:github/iree-org/iree@v{IREE_VERSION}");
        [
            Self::new(&iree, "iree-runtime", IREE_VERSION, "Apache-2.0 WITH LLVM-exception"),
            Self::new("pkg:github/dvidelabs/flatcc@v0.6.2", "flatcc", "0.6.2", "Apache-2.0"),
        ]
    }
}

/// Writes the SBOM.
pub(super) fn write(build: &Build<'_>, path: &Path) -> Result<()> {
    let mut contents = BTreeMap::new();
    for (part, package, features) in PARTS {
        let mut cargo = build.workspace.cargo(&format!(
            "tree --locked --edges normal,no-proc-macro --prefix none --no-dedupe --format {{p}}|{{l}} \
             --target {} -p {package} {features}",
            build.triple()
        ));
        let text = shell::output(&mut cargo)?;
        let mut libraries: BTreeSet<Library> = text.lines().filter_map(Library::of_line).collect();
        if part == WITH_MLIR {
            let llvm = shell::output(
                build.workspace.command(format!("{LLVM_PREFIX}/bin/llvm-config")).arg("--version"),
            )?;
            let (llvm, license) = (llvm.trim(), "Apache-2.0 WITH LLVM-exception");
            let purl = format!("pkg:github/llvm/llvm-project@llvmorg-{llvm}");
            libraries.insert(Library::new(&purl, "mlir", llvm, license));
        }
        if !WITHOUT_IREE.contains(&part) {
            libraries.extend(Library::of_iree());
        }
        contents.insert(part, libraries);
    }
    let lock = build.workspace.root.join("Cargo.lock");
    let lock: toml::Table = toml::from_str(&fs::read_to_string(&lock)?)?;
    let locked: Vec<Locked> = lock["package"].clone().try_into().context("Cargo.lock")?;
    let document = document(build.version(), &contents, &locked);
    let text = serde_json::to_string_pretty(&document)? + "\n";
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Returns the document: every part and library once, and what is in each part.
fn document(version: &str, contents: &BTreeMap<&str, BTreeSet<Library>>, locked: &[Locked]) -> Value {
    let whole = format!("pkg:github/mlxcel/mlxcel-aot@v{version}");
    let own = |part: &str| format!("{whole}#{part}");
    let part = |part: &&str| {
        let kind = if part.starts_with("mlxcel-") { "application" } else { "library" };
        json!({ "type": kind, "bom-ref": own(part), "name": part, "version": version })
    };
    let library = |library: &Library| {
        let Library { purl, name, version, license } = library;
        let mut component = json!({
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [{ "expression": license }],
        });
        let is_crate = purl.starts_with("pkg:cargo/");
        let found = locked.iter().find(|found| is_crate && found.name == *name && found.version == *version);
        if let Some(checksum) = found.and_then(|found| found.checksum.as_ref()) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let libraries: BTreeSet<&Library> = contents.values().flatten().collect();
    let components: Vec<Value> =
        contents.keys().map(part).chain(libraries.into_iter().map(library)).collect();
    let inside = contents.iter().map(|(part, libraries)| {
        let refs: Vec<&str> = libraries.iter().map(|library| library.purl.as_str()).collect();
        json!({ "ref": own(part), "dependsOn": refs })
    });
    let parts: Vec<String> = contents.keys().map(|part| own(part)).collect();
    let dependencies: Vec<Value> =
        [json!({ "ref": whole, "dependsOn": parts })].into_iter().chain(inside).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "bom-ref": whole, "name": "mlxcel", "version": version },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

#[cfg(test)]
mod tests {
    use cyclonedx_bom::{prelude::Bom, validation::Validate as _};

    use super::*;

    #[test]
    fn lines_of_cargo_tree_are_libraries_or_our_own() {
        let library = Library::of_line("base64 v0.13.1|MIT/Apache-2.0").unwrap();
        assert_eq!(
            (library.purl.as_str(), library.license.as_str()),
            ("pkg:cargo/base64@0.13.1", "MIT OR Apache-2.0")
        );
        assert_eq!(Library::of_line("mlxcel-runtime v0.1.0 (/somewhere/runtime)|Apache-2.0"), None);
        assert_eq!(Library::of_line(""), None);
    }

    #[test]
    fn the_document_is_valid_and_names_what_is_in_each_part() {
        let lines = ["anyhow v1.0.104|MIT OR Apache-2.0", "libm v0.2.0|MIT"];
        let libraries: BTreeSet<Library> =
            lines.iter().filter_map(|line| Library::of_line(line)).chain(Library::of_iree()).collect();
        let contents = BTreeMap::from([("mlxcel-run", libraries), ("libmlxcel", BTreeSet::new())]);
        let checksum = Some("ab".repeat(32));
        let locked = [Locked { name: "anyhow".into(), version: "1.0.104".into(), checksum }];
        let document = document("0.1.0", &contents, &locked);
        let bom = Bom::parse_from_json(serde_json::to_string(&document).unwrap().as_bytes()).unwrap();
        let result = bom.validate();
        assert!(result.passed(), "{result:?}");
        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    }
}
