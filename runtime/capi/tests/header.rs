//! `include/mlxcel.h` is what cbindgen writes of the sources.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::{env, fs, path::Path};

/// `MLXCEL_BLESS=1` writes the header.
#[test]
fn the_header_is_that_of_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in ["pointers", "types", "error", "bundle", "engine", "generate", "stream", "program"] {
        builder = builder.with_src(folder.join(format!("src/ffi/{name}.rs")));
    }
    let mut text = Vec::new();
    builder.with_src(folder.join("src/errors.rs")).generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    let header = folder.join("include/mlxcel.h");
    if env::var_os("MLXCEL_BLESS").is_some() {
        fs::create_dir_all(folder.join("include")).unwrap();
        fs::write(&header, &text).unwrap();
    }
    let found = fs::read_to_string(header).unwrap_or_default();
    assert!(
        found == text,
        "mlxcel.h differs from the sources\nhint: MLXCEL_BLESS=1 cargo test -p mlxcel-capi --test header"
    );
}
