//! Hides what the libraries inside export: the interface alone is visible.

#![allow(clippy::print_stdout, reason = "a build script prints its instructions for cargo")]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmlxcel.so.{major}");
}
