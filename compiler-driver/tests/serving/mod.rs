//! mlxcel-serve with the demo model, as programs of others see it.

mod server;

use server::{Server, python};

/// Chats, formats, calls, completions and errors through the package `openai`.
#[test]
fn openai_client() {
    let server = Server::start(&[]);
    python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--url", &server.url, "."]);
}

/// Answers of schemas, each of which the package `jsonschema` validates.
#[test]
fn answers_are_of_their_schemas() {
    let server = Server::start(&[]);
    python(&["schemas.py", "--url", &server.url, "--count", "60"]);
}
