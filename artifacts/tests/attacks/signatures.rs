//! Signatures over another manifest or by another key, and malformed signatures and keys.

use std::{collections::BTreeMap, fs, io::Write, os::unix::fs::symlink, path::PathBuf};

use mlxcel_artifacts::{Bundle, PublicKey, SecretKey, report};

use crate::Victim;

/// A signed bundle with its public key.
struct Signed {
    victim: Victim,
    key: PublicKey,
}

impl Signed {
    fn new() -> Self {
        let victim = Victim::new();
        let (secret, key) = keys(&victim, "k");
        victim.open().unwrap().sign(&secret, "the first").unwrap();
        Self { victim, key }
    }

    fn signature(&self) -> PathBuf {
        self.victim.path().join("manifest.toml.minisig")
    }

    fn verdict(&self) -> Result<String, String> {
        let bundle = self.victim.open().map_err(|error| report(&error))?;
        bundle.verify_signature(&self.key).map(|signed| signed.comment).map_err(|error| report(&error))
    }

    /// Returns the verdict after replacing the signature's text.
    fn with(&self, signature: &[u8]) -> Result<String, String> {
        fs::write(self.signature(), signature).unwrap();
        self.verdict()
    }
}

fn keys(victim: &Victim, name: &str) -> (SecretKey, PublicKey) {
    let secret = victim.folder.path().join(name);
    let key = SecretKey::generate(&secret, &secret.with_extension("pub"), None).unwrap();
    (SecretKey::open(&secret, || unreachable!("the key has no password")).unwrap(), key)
}

#[test]
fn a_valid_signature() {
    let signed = Signed::new();
    assert_eq!(signed.verdict().unwrap(), "the first");
    let bundle = signed.victim.open().unwrap();
    assert_eq!(bundle.signature_info().unwrap().unwrap().key, signed.key.id());
}

#[test]
fn no_signature_or_another_key() {
    let signed = Signed::new();
    let refusal = |found: &str| {
        format!(
            "error: found {found}, expected a signature of this bundle by the key {}\n\
             hint: do not run this bundle, and get it again from its maker",
            signed.key.id()
        )
    };
    let (other, other_key) = keys(&signed.victim, "other");
    signed.victim.open().unwrap().sign(&other, "").unwrap();
    assert_eq!(signed.verdict().unwrap_err(), refusal(&format!("one by the key {}", other_key.id())));
    fs::remove_file(signed.signature()).unwrap();
    assert_eq!(signed.verdict().unwrap_err(), refusal("no signature"));
}

#[test]
fn a_signature_over_another_manifest() {
    let signed = Signed::new();
    let text = fs::read(signed.signature()).unwrap();
    // A manifest that is valid and means the same, except for the name.
    signed.victim.edit("model = \"tiny\"", "model = \"teny\"");
    let refused = signed.verdict().unwrap_err();
    assert!(
        refused.starts_with("error: found one of another manifest, or a forged one, expected"),
        "{refused}"
    );
    // A byte without a meaning in TOML.
    let other = Signed::new();
    other.victim.edit("format = 7", "format = 7 ");
    assert!(other.verdict().is_err());
    // The signature of another bundle.
    let third = Signed { victim: Victim::new(), key: signed.key.clone() };
    third.victim.edit("vocab = 100", "vocab = 100 ");
    assert!(third.with(&text).is_err());
}

#[test]
fn every_changed_character_is_noticed() {
    let signed = Signed::new();
    let text = fs::read(signed.signature()).unwrap();
    let covered = text.iter().position(|&byte| byte == b'\n').unwrap();
    for at in 0..text.len() {
        let mut changed = text.clone();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let verdict = signed.with(&changed);
        // The signature does not cover the untrusted comment.
        assert_eq!(verdict.is_ok(), (19..covered).contains(&at), "{at}: {verdict:?}");
    }
    for length in 0..text.len() - 1 {
        assert!(signed.with(&text[..length]).is_err(), "cut after {length}");
    }
    assert!(signed.with(&text).is_ok());
}

#[test]
fn malformed_signatures() {
    let signed = Signed::new();
    let text = String::from_utf8(fs::read(signed.signature()).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let long = "A".repeat(10_000);
    let texts = [
        String::new(),
        "\n\n\n\n".into(),
        long,
        lines[..3].join("\n"),
        [lines[0], lines[3], lines[2], lines[1]].join("\n"),
        [lines[0], lines[3], lines[2], lines[3]].join("\n"),
        [lines[0], &"A".repeat(100), lines[2], &"A".repeat(88)].join("\n"),
        text.replace("trusted comment: ", ""),
        text.replace("the first", "the last"),
    ];
    for text in texts {
        let refused = signed.with(text.as_bytes()).unwrap_err();
        assert!(refused.starts_with("error: "), "{refused}");
    }
    assert!(signed.with(b"\xff\xfe").unwrap_err().starts_with("error: cannot read "));
    fs::remove_file(signed.signature()).unwrap();
    symlink("/dev/zero", signed.signature()).unwrap();
    assert!(signed.verdict().unwrap_err().contains(": not a regular file\nhint: "));
}

#[test]
fn malformed_keys() {
    let victim = Victim::new();
    let file = victim.folder.path().join("file");
    let found = |text: &[u8]| {
        fs::write(&file, text).unwrap();
        report(&PublicKey::find(file.to_str().unwrap()).unwrap_err())
    };
    let hint = "\nhint: use a key that `mlxcel-bundle keygen` or minisign generated";
    assert_eq!(found(b""), format!("error: invalid public key: the file is empty{hint}"));
    for text in [&b"x"[..], b"untrusted comment: x\n", &[b'A'; 56], &[b'!'; 56], &[b'R'; 4096]] {
        assert!(found(text).starts_with("error: invalid public key: "), "{}", found(text));
    }
    assert!(PublicKey::find("no file and no key").is_err());
    assert!(PublicKey::find(&"A".repeat(1 << 20)).is_err());
    assert!(found(&[b'A'; 5000]).contains(": found 5000 bytes, expected at most 4096\nhint: "));
    let secret = |text: &str| {
        fs::write(&file, text).unwrap();
        report(&SecretKey::open(&file, || Ok("x".into())).unwrap_err())
    };
    for text in ["", "\n", "untrusted comment: x\nAAAA\n", &format!("c\n{}\n", "A".repeat(212))] {
        assert!(secret(text).starts_with("error: invalid secret key"), "{text}: {}", secret(text));
    }
}

#[test]
fn keys_are_not_overwritten_and_need_their_password() {
    let victim = Victim::new();
    let at = |name: &str| victim.folder.path().join(name);
    let made = SecretKey::generate(&at("k"), &at("k.pub"), Some("open sesame".into())).unwrap();
    let before = fs::read(at("k")).unwrap();
    for (secret, public) in [("k", "new.pub"), ("new", "k.pub")] {
        let error = SecretKey::generate(&at(secret), &at(public), None).unwrap_err().to_string();
        assert!(error.contains("exists, expected a new file"), "{error}");
    }
    assert!(!at("new").exists() && !at("new.pub").exists());
    assert_eq!(fs::read(at("k")).unwrap(), before);
    let wrong = SecretKey::open(&at("k"), || Ok("sesame".into())).unwrap_err();
    assert!(report(&wrong).contains("Wrong password"), "{}", report(&wrong));
    let key = SecretKey::open(&at("k"), || Ok("open sesame".into())).unwrap();
    let bundle = Bundle::open(&victim.path()).unwrap();
    bundle.sign(&key, "").unwrap();
    bundle.verify_signature(&made).unwrap();
}

#[test]
fn a_signed_bundle_cannot_be_changed() {
    let signed = Signed::new();
    let bundle = signed.victim.open().unwrap();
    let write = |_: &mut dyn Write| Ok::<_, mlxcel_artifacts::Error>(());
    let packed = bundle.with_packed_weights("cpu", BTreeMap::new(), None, write);
    let refused = packed.unwrap_err().to_string();
    assert!(
        refused.starts_with(&format!("the bundle is signed by the key {}", signed.key.id())),
        "{refused}"
    );
}
