//! What the interpreter sees of the shared library. The package's own tests run with compiled bundles: see
//! `compiler-driver/tests/python.rs`.

// Clippy allows unwrap in tests, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::{env, process::Command};

/// Returns the names that the library exports, and those that it wants of others.
fn symbols() -> (Vec<String>, Vec<String>) {
    // Cargo builds it beside the program of this test.
    let library = env::current_exe().unwrap().with_file_name("lib_native.so");
    let list = |option: &str| {
        let output = Command::new("nm").args(["--dynamic", option]).arg(&library).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
    };
    (list("--defined-only"), list("--undefined-only"))
}

#[test]
fn the_library_exports_its_entry_alone_and_links_no_interpreter() {
    let (exported, wanted) = symbols();
    assert_eq!(exported, ["PyInit__native"]);
    let of_python: Vec<&str> = wanted.iter().map(String::as_str).filter(|name| name.contains("Py")).collect();
    assert!(of_python.contains(&"PyErr_SetObject"));
    // Of the private names, these are a part of the stable ABI. Those of 3.12 and later are not in 3.11.
    let stable = [
        "_Py_DecRef",
        "_Py_FalseStruct",
        "_Py_IncRef",
        "_Py_NoneStruct",
        "_Py_NotImplementedStruct",
        "_Py_TrueStruct",
    ];
    let others = of_python.iter().filter(|name| name.starts_with("_Py") && !stable.contains(name));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&&str>::new());
}
