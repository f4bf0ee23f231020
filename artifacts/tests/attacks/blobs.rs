//! Damaged and hostile blobs.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
};

use mlxcel_artifacts::{Bundle, Digest, report};

use crate::{CONFIG, DAMAGED, VMFB, Victim, WEIGHTS};

/// A blob of every kind, with its name in messages.
const KINDS: [(&[u8], &str); 3] =
    [(VMFB, "vmfb of target cpu"), (CONFIG, "file config.json"), (WEIGHTS, "weights file model.safetensors")];

#[test]
fn a_flipped_byte() {
    for (bytes, what) in KINDS {
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let victim = Victim::new();
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 0x10;
            fs::write(victim.blob(bytes), &flipped).unwrap();
            let (found, expected) = (Digest::of(&flipped), Digest::of(bytes));
            assert_eq!(victim.message(), format!("{what} has digest {found}, expected {expected}{DAMAGED}"));
        }
    }
}

#[test]
fn weights_are_verified_when_they_are_used() {
    let victim = Victim::new();
    let bundle = Bundle::open_without_weights(&victim.path()).unwrap();
    assert_eq!(bundle.weights().unwrap(), [("model.safetensors", victim.blob(WEIGHTS))]);
    let mut flipped = WEIGHTS.to_vec();
    flipped[0] ^= 1;
    fs::write(victim.blob(WEIGHTS), &flipped).unwrap();
    let bundle = Bundle::open_without_weights(&victim.path()).unwrap();
    assert_eq!(report(&bundle.weights().unwrap_err()), format!("error: {}", victim.message()));
    // Opening checks the size of weights, and every other blob.
    fs::write(victim.blob(WEIGHTS), &flipped[1..]).unwrap();
    assert_eq!(Bundle::open_without_weights(&victim.path()).unwrap_err().to_string(), victim.message());
    fs::write(victim.blob(WEIGHTS), WEIGHTS).unwrap();
    fs::write(victim.blob(CONFIG), CONFIG.to_ascii_uppercase()).unwrap();
    assert_eq!(Bundle::open_without_weights(&victim.path()).unwrap_err().to_string(), victim.message());
}

#[test]
fn read_blob_verifies_what_it_read() {
    let victim = Victim::new();
    let bundle = Bundle::open_without_weights(&victim.path()).unwrap();
    assert_eq!(bundle.read_file("config.json").unwrap().unwrap(), CONFIG);
    assert_eq!(bundle.read_file("../manifest.toml").unwrap(), None);
    let vmfb = bundle.manifest().targets["cpu"].vmfb;
    let mut bytes = vec![0; VMFB.len()];
    bundle.read_blob(&vmfb, &mut bytes).unwrap();
    assert_eq!(bytes, VMFB);
    // Changed after opening: other bytes, another length, a link.
    let mut refused = || bundle.read_blob(&vmfb, &mut bytes).unwrap_err().to_string();
    fs::write(victim.blob(VMFB), VMFB.to_ascii_uppercase()).unwrap();
    assert_eq!(refused(), victim.message());
    fs::write(victim.blob(VMFB), &VMFB[1..]).unwrap();
    assert_eq!(refused(), victim.message());
    let elsewhere = victim.path().join("elsewhere");
    fs::write(&elsewhere, VMFB).unwrap();
    fs::remove_file(victim.blob(VMFB)).unwrap();
    symlink(&elsewhere, victim.blob(VMFB)).unwrap();
    assert_eq!(refused(), victim.message());
    // A buffer of another size than the blob.
    fs::rename(&elsewhere, victim.blob(VMFB)).unwrap();
    bytes.pop();
    assert!(bundle.read_blob(&vmfb, &mut bytes).is_err());
}

#[test]
fn a_missing_blob() {
    for (bytes, what) in KINDS {
        let victim = Victim::new();
        fs::remove_file(victim.blob(bytes)).unwrap();
        let hex = Digest::of(bytes).hex();
        assert_eq!(victim.message(), format!("{what} is missing: expected blobs/{hex}{DAMAGED}"));
    }
}

#[test]
fn a_missing_blobs_folder() {
    let hex = Digest::of(VMFB).hex();
    let expected = format!("vmfb of target cpu is missing: expected blobs/{hex}{DAMAGED}");
    let victim = Victim::new();
    fs::remove_dir_all(victim.path().join("blobs")).unwrap();
    assert_eq!(victim.message(), expected);
    fs::write(victim.path().join("blobs"), "a file").unwrap();
    assert_eq!(victim.message(), expected);
}

#[test]
fn a_truncated_or_grown_blob() {
    for (bytes, what) in KINDS {
        for len in [0, bytes.len() - 1, bytes.len() + 1] {
            let victim = Victim::new();
            let mut other = bytes.to_vec();
            other.resize(len, 0);
            fs::write(victim.blob(bytes), &other).unwrap();
            let (expected, hex) = (bytes.len(), Digest::of(bytes).hex());
            assert_eq!(
                victim.message(),
                format!("{what} has {len} bytes, expected {expected}: blobs/{hex}{DAMAGED}")
            );
        }
    }
}

#[test]
fn a_blob_that_is_a_link() {
    for (bytes, what) in KINDS {
        let victim = Victim::new();
        // A link is refused even if it leads to the right bytes.
        let outside = victim.folder.path().join("outside");
        fs::rename(victim.blob(bytes), &outside).unwrap();
        symlink(&outside, victim.blob(bytes)).unwrap();
        let hex = Digest::of(bytes).hex();
        assert_eq!(
            victim.message(),
            format!("{what} is a symbolic link, expected a regular file: blobs/{hex}{DAMAGED}")
        );
    }
}

#[test]
fn a_link_to_an_endless_file() {
    let victim = Victim::new();
    fs::remove_file(victim.blob(VMFB)).unwrap();
    symlink("/dev/zero", victim.blob(VMFB)).unwrap();
    assert!(victim.message().starts_with("vmfb of target cpu is a symbolic link"));
}

#[test]
fn a_blob_that_is_a_folder_or_a_socket() {
    let hex = Digest::of(VMFB).hex();
    let victim = Victim::new();
    fs::remove_file(victim.blob(VMFB)).unwrap();
    fs::create_dir(victim.blob(VMFB)).unwrap();
    assert_eq!(
        victim.message(),
        format!("vmfb of target cpu is a folder, expected a regular file: blobs/{hex}{DAMAGED}")
    );
    fs::remove_dir(victim.blob(VMFB)).unwrap();
    // The path of a socket is limited to about 100 bytes, so it is created elsewhere and moved.
    let socket = victim.folder.path().join("s");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::rename(socket, victim.blob(VMFB)).unwrap();
    assert_eq!(
        victim.message(),
        format!("vmfb of target cpu is a special file, expected a regular file: blobs/{hex}{DAMAGED}")
    );
}

#[test]
fn two_blobs_exchanged() {
    let victim = Victim::new();
    fs::write(victim.blob(VMFB), CONFIG).unwrap();
    fs::write(victim.blob(CONFIG), VMFB).unwrap();
    assert!(victim.message().starts_with("vmfb of target cpu has 23 bytes, expected 10: "));
}
