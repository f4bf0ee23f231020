//! What a bundle says of its parts, in the documents that list them.
//!
//! A bundle can be added to after it was made: whoever adds a file has it listed here, so that the list of parts is the
//! bundle's.

use serde_json::{Value, json};

use crate::{blob::Blob, error::Error, manifest::Manifest};

/// The bundle's parts and what made it, in CycloneDX's form.
pub const SBOM: &str = "sbom.cdx.json";

/// How it was made, as an in-toto statement.
pub const PROVENANCE: &str = "provenance.intoto.json";

/// No longer document is parsed: its values take many times its bytes in memory. Those of a model with 20,000 tensors have
/// some 100 kB, because they do not list tensors.
const LIMIT_BYTES: usize = 16 << 20;

/// The document `name`, of the text `bytes`, with every file that `manifest` names, which has no documents yet: as CycloneDX's
/// components of the type `file`, and as the subject of an in-toto statement. Another document stays as it is.
///
/// # Errors
/// It is no such document.
pub fn with_parts(name: &str, bytes: Vec<u8>, manifest: &Manifest) -> Result<Vec<u8>, Error> {
    let bad = |problem: String| Error::Document { name: name.to_owned(), problem };
    let (list, part): (&str, fn(&str, &Blob) -> Value) = match name {
        SBOM => ("components", component),
        PROVENANCE => ("subject", subject),
        _ => return Ok(bytes),
    };
    if bytes.len() > LIMIT_BYTES {
        return Err(bad(format!("it has {} bytes, expected at most {LIMIT_BYTES}", bytes.len())));
    }
    let mut document: Value = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    let found = document.get_mut(list).and_then(Value::as_array_mut);
    let parts = found.ok_or_else(|| bad(format!("expected a list of the name {list}")))?;
    // All of in-toto's are files.
    parts.retain(|part| name == SBOM && part["type"] != "file");
    parts.splice(0..0, manifest.blobs().map(|(what, blob)| part(&what, blob)));
    // Whether this crate keeps the order of keys depends on what else is built with it.
    document.sort_all_objects();
    serde_json::to_vec_pretty(&document).map_err(|error| bad(error.to_string()))
}

fn component(what: &str, blob: &Blob) -> Value {
    json!({ "type": "file", "name": what, "hashes": [{ "alg": "BLAKE3", "content": blob.digest.hex() }] })
}

fn subject(what: &str, blob: &Blob) -> Value {
    json!({ "name": what, "digest": { "blake3": blob.digest.hex() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;

    #[test]
    fn files_take_the_place_of_files() {
        let text = r#"{"b": 1, "a": {"d": 2, "c": 3}, "components": [{"type": "file", "name": "old"}, {"type": "library"}]}"#;
        let manifest = manifest();
        let once = with_parts(SBOM, text.into(), &manifest).unwrap();
        let listed: Value = serde_json::from_slice(&once).unwrap();
        let names: Vec<_> =
            listed["components"].as_array().unwrap().iter().map(|part| &part["name"]).collect();
        let mut expected: Vec<Value> = manifest.blobs().map(|(what, _)| what.into()).collect();
        expected.push(Value::Null);
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        assert!(String::from_utf8(once.clone()).unwrap().starts_with("{\n  \"a\": {\n    \"c\": 3,"));
        assert_eq!(with_parts(SBOM, once.clone(), &manifest).unwrap(), once);
    }

    #[test]
    fn what_is_no_such_document() {
        let manifest = manifest();
        assert_eq!(with_parts("notes.txt", b"anything".to_vec(), &manifest).unwrap(), b"anything");
        let message = |text: &str| with_parts(PROVENANCE, text.into(), &manifest).unwrap_err().to_string();
        let long = " ".repeat(LIMIT_BYTES + 1);
        let expected = ": it has 16777217 bytes, expected at most 16777216\n";
        assert!(message(&long).contains(expected));
        insta::assert_snapshot!(message("{"), @r"
        document provenance.intoto.json lists no parts: EOF while parsing an object at line 1 column 1
        hint: the bundle is damaged, or mlxcel-compile did not make it: get it again from where it was made
        ");
        insta::assert_snapshot!(message(r#"{"subject": {}}"#), @r"
        document provenance.intoto.json lists no parts: expected a list of the name subject
        hint: the bundle is damaged, or mlxcel-compile did not make it: get it again from where it was made
        ");
    }
}
