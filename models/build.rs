//! Lists `presets/*.json` as source text, so that a new preset is one file there and nothing else.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("presets");
    println!("cargo:rerun-if-changed={}", folder.display());

    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();

    let mut list = String::from("&[\n");
    for name in names {
        let path = folder.join(format!("{name}.json"));
        writeln!(list, "    Preset {{ name: {name:?}, config: include_str!({path:?}) }},")?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("presets.rs"), list)?;
    Ok(())
}
