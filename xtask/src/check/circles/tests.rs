use std::fs;

use super::*;

/// Returns what the check says of a crate `a` with these files below `src`.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut listed = Vec::new();
    for (file, text) in files {
        let file = format!("a/src/{file}");
        let path = folder.path().join(&file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        listed.push(file);
    }
    check(folder.path(), &listed).unwrap()
}

#[test]
fn layers_pass() {
    let found = circles(&[
        ("lib.rs", "mod error;\nmod store;\npub use error::Error;\npub use store::{Store, names::*};"),
        ("error.rs", "pub struct Error;"),
        ("store/mod.rs", "pub mod names;\nmod open;\npub use open::Store;"),
        ("store/names.rs", "use crate::Error;\npub struct Name(Error);"),
        ("store/open.rs", "use super::names::Name;\npub struct Store(Name, crate::Error);"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_direct_circle_is_named() {
    let found = circles(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "use crate::b::{B, other};\npub struct A(B);"),
        ("b.rs", "pub struct B;\npub fn other() { crate::a::A::new(); }"),
    ]);
    insta::assert_snapshot!(found.join("\n"), @r"
    a: found an import circle, expected none
      a/src/a.rs takes B, other from a/src/b.rs
      a/src/b.rs takes A from a/src/a.rs
    ");
}

#[test]
fn a_circle_through_the_crate_root_is_named() {
    let found = circles(&[
        ("lib.rs", "mod bench;\nmod device;\nmod session;\npub use bench::Profile;\npub use session::*;"),
        ("bench.rs", "use crate::device;\npub struct Profile(device::Device);"),
        ("device.rs", "pub struct Device;\nimpl Device { fn s(&self) -> Option<crate::Session> { None } }"),
        ("session.rs", "use crate::Profile;\npub struct Session(Profile);"),
    ]);
    insta::assert_snapshot!(found.join("\n"), @r"
    a: found an import circle, expected none
      a/src/bench.rs takes Device from a/src/device.rs
      a/src/device.rs takes Session from a/src/session.rs
      a/src/session.rs takes Profile from a/src/bench.rs
    ");
}

#[test]
fn a_parent_and_its_child_are_a_circle_when_each_takes_from_the_other() {
    let parent = "mod child;\npub struct Shared;\nfn f() { child::help(); }";
    let child = "pub fn help() -> super::Shared { super::Shared }";
    let found = circles(&[("lib.rs", "mod parent;"), ("parent.rs", parent), ("parent/child.rs", child)]);
    insta::assert_snapshot!(found.join("\n"), @r"
    a: found an import circle, expected none
      a/src/parent.rs takes help from a/src/parent/child.rs
      a/src/parent/child.rs takes Shared from a/src/parent.rs
    ");
    let parent = "mod child;\npub use child::help;\npub struct Shared;";
    let found = circles(&[("lib.rs", "mod parent;"), ("parent.rs", parent), ("parent/child.rs", child)]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn paths_in_macros_and_attributes_count() {
    let found = circles(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "pub fn f() { println!(\"{}\", x.b, crate::b::g(1)); }"),
        ("b.rs", "#[serde(default = \"crate::c::h\")]\npub struct S;\npub fn g(_: u8) {}"),
        ("c.rs", "use crate::a;\npub fn h() { vec![a::f()]; }"),
    ]);
    insta::assert_snapshot!(found.join("\n"), @r"
    a: found an import circle, expected none
      a/src/a.rs takes g from a/src/b.rs
      a/src/b.rs takes h from a/src/c.rs
      a/src/c.rs takes f from a/src/a.rs
    ");
}

#[test]
fn tests_do_not_count() {
    let found = circles(&[
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a.rs",
            "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(test)]\nuse crate::b::B;",
        ),
        ("b.rs", "pub struct B(crate::a::A);"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_program_is_a_crate_of_its_own() {
    let found = circles(&[
        ("lib.rs", "mod x;"),
        ("x.rs", "pub struct X;"),
        ("bin/shared/x.rs", "pub struct Y(crate::z::Z);"),
        ("bin/one/main.rs", "#[path = \"../shared/x.rs\"]\nmod x;\nmod z;\nfn main() { x::Y; }"),
        ("bin/one/z.rs", "pub struct Z;"),
        (
            "bin/two.rs",
            "#[path = \"shared/x.rs\"]\nmod x;\nmod z { pub struct Z(crate::x::Y); }\nfn main() {}",
        ),
    ]);
    insta::assert_snapshot!(found.join("\n"), @r"
    a: found an import circle, expected none
      a/src/bin/shared/x.rs takes Z from a/src/bin/two.rs
      a/src/bin/two.rs takes Y from a/src/bin/shared/x.rs
    ");
}

#[test]
fn modules_that_a_macro_declares_are_read() {
    let found = circles(&[
        ("lib.rs", "mod family;\nmod other;"),
        ("family.rs", "families! { \"llama\" => llama }"),
        ("family/llama.rs", "pub fn describe() { crate::other::f(); }"),
        ("other.rs", "pub fn f() { crate::family::llama::describe(); }"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
}
