//! Hides what the libraries inside export: the interpreter needs the entry alone.

#![allow(clippy::print_stdout, reason = "a build script prints its instructions for cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
