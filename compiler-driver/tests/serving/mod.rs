//! mlxcel-serve with the demo model, as programs of others see it, and under load.

mod alone;
mod http;
mod restarts;
mod server;
mod soak;

use server::{Server, demo, python};

use crate::real::program;

/// Chats, formats, calls, completions and errors through the package `openai`.
#[test]
fn openai_client() {
    let server = Server::start(&[]);
    python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--url", &server.url, "."]);
}

/// Receipts of answers beside others, which `mlxcel-run` makes again.
#[test]
fn receipts_are_replayed() {
    let demo = demo();
    let server = Server::of(demo.built.bundle.path(), "127.0.0.1:0", &[]);
    let bundle = demo.built.bundle.path().display().to_string();
    let program = program("mlxcel-run").display().to_string();
    python(&["receipts.py", "--url", &server.url, "--bundle", &bundle, "--program", &program]);
}

/// Answers of schemas, each of which the package `jsonschema` validates.
#[test]
fn answers_are_of_their_schemas() {
    let server = Server::start(&[]);
    python(&["schemas.py", "--url", &server.url, "--count", "60"]);
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % most
    }
}
