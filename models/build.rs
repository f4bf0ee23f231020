//! Lists `presets/*.json` as source text, so that a new preset is one file there and nothing else; that of an encoder may
//! have another one in `presets/pooling/`.

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
        let pooling = folder.join(format!("pooling/{name}.json"));
        let pooling =
            if pooling.exists() { format!("Some(include_str!({pooling:?}))") } else { "None".to_owned() };
        writeln!(
            list,
            "    Preset {{ name: {name:?}, config: include_str!({path:?}), pooling: {pooling} }},"
        )?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("presets.rs"), list)?;
    Ok(())
}
