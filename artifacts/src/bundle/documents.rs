//! Documents that list a bundle's files: the SBOM and the provenance.
//!
//! Packing adds files to a finished bundle. [`with_file_list`] then updates the documents.

use serde_json::{Value, json};

use crate::{
    blob::Blob,
    digest::Digest,
    error::Error,
    manifest::{CalibratedBy, Manifest},
};

/// The file name of the bundle's SBOM, in CycloneDX's format.
pub const SBOM: &str = "sbom.cdx.json";

/// The file name of the bundle's provenance, an in-toto statement.
pub const PROVENANCE: &str = "provenance.intoto.json";

/// The longest document that is parsed. Parsed values take many times their text's memory.
const LIMIT_BYTES: usize = 16 << 20;

/// Returns the document `name` with the files that `manifest` lists: as `file` components of an SBOM, or as the subject of
/// an in-toto statement.
///
/// Replaces the files that the document listed before. A statement also says by which text weights were rounded. `manifest`
/// must have no documents yet. Other documents stay as they are.
///
/// # Errors
/// The document is too long, or is not an SBOM or a statement.
pub fn with_file_list(name: &str, bytes: Vec<u8>, manifest: &Manifest) -> Result<Vec<u8>, Error> {
    let malformed = |problem: String| Error::Document { name: name.to_owned(), problem };
    let (list, part): (&str, fn(&str, &Blob) -> Value) = match name {
        SBOM => ("components", component),
        PROVENANCE => ("subject", subject),
        _ => return Ok(bytes),
    };
    if bytes.len() > LIMIT_BYTES {
        return Err(malformed(format!("found {} bytes, expected at most {LIMIT_BYTES}", bytes.len())));
    }
    let mut document: Value = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
    let found = document.get_mut(list).and_then(Value::as_array_mut);
    let parts = found.ok_or_else(|| malformed(format!("found no list `{list}`, expected one")))?;
    // Every subject of a statement is a file.
    parts.retain(|part| name == SBOM && part["type"] != "file");
    parts.splice(0..0, manifest.blobs().map(|(role, blob)| part(&role.to_string(), blob)));
    if name == PROVENANCE {
        note_calibration(&mut document, manifest);
    }
    // serde_json keeps or sorts keys depending on the features that other crates enable.
    document.sort_all_objects();
    serde_json::to_vec_pretty(&document).map_err(|error| malformed(error.to_string()))
}

/// Writes by which text each target's packed weights were rounded into a statement's parameters of the target.
fn note_calibration(document: &mut Value, manifest: &Manifest) {
    let parameters = document.pointer_mut("/predicate/buildDefinition/internalParameters");
    let Some(parameters) = parameters.and_then(Value::as_object_mut) else { return };
    for (name, target) in &manifest.targets {
        let Some(of_target) = parameters.get_mut(name).and_then(Value::as_object_mut) else { continue };
        match target.packing.as_ref().and_then(|packing| packing.calibrated_by) {
            Some(CalibratedBy { text, tokens, moments }) => {
                let digest = |digest: Digest| json!({ "blake3": digest.hex() });
                let calibration =
                    json!({ "text": digest(text), "tokens": tokens, "moments": digest(moments) });
                of_target.insert("calibration".into(), calibration);
            }
            None => drop(of_target.remove("calibration")),
        }
    }
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
    fn files_replace_the_files_listed_before() {
        let text = r#"{"b": 1, "a": {"d": 2, "c": 3}, "components": [{"type": "file", "name": "old"}, {"type": "library"}]}"#;
        let manifest = manifest();
        let once = with_file_list(SBOM, text.into(), &manifest).unwrap();
        let listed: Value = serde_json::from_slice(&once).unwrap();
        let names: Vec<_> =
            listed["components"].as_array().unwrap().iter().map(|part| &part["name"]).collect();
        let mut expected: Vec<Value> = manifest.blobs().map(|(role, _)| role.to_string().into()).collect();
        expected.push(Value::Null);
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        assert!(String::from_utf8(once.clone()).unwrap().starts_with("{\n  \"a\": {\n    \"c\": 3,"));
        assert_eq!(with_file_list(SBOM, once.clone(), &manifest).unwrap(), once);
    }

    #[test]
    fn malformed_documents_are_refused() {
        let manifest = manifest();
        assert_eq!(with_file_list("notes.txt", b"anything".to_vec(), &manifest).unwrap(), b"anything");
        let message =
            |text: &str| with_file_list(PROVENANCE, text.into(), &manifest).unwrap_err().to_string();
        let long = " ".repeat(LIMIT_BYTES + 1);
        let expected = ": found 16777217 bytes, expected at most 16777216\n";
        assert!(message(&long).contains(expected));
        insta::assert_snapshot!(message("{"), @r"
        document provenance.intoto.json has no list of files: EOF while parsing an object at line 1 column 1
        hint: the bundle is damaged: get it again from its maker, or compile it again with `mlxcel-compile`
        ");
        insta::assert_snapshot!(message(r#"{"subject": {}}"#), @r"
        document provenance.intoto.json has no list of files: found no list `subject`, expected one
        hint: the bundle is damaged: get it again from its maker, or compile it again with `mlxcel-compile`
        ");
    }
}
