//! Equal inputs give bundles with equal bytes, whatever the user, folder, time and number of threads.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Surroundings of a build that must not matter.
struct Surroundings {
    /// Contains home, store and working folder.
    folder: PathBuf,
    user: &'static str,
    zone: &'static str,
    /// Number of threads.
    threads: &'static str,
    /// Time for `faketime`.
    day: Option<&'static str>,
}

/// Builds `model` with an empty store. Returns the bundle's folder.
fn built(surroundings: &Surroundings, model: &Path, targets: &str) -> PathBuf {
    let Surroundings { folder, user, zone, threads, day } = surroundings;
    let (home, work) = (folder.join("home of").join(user), folder.join("work"));
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(&work).unwrap();
    // A copy has other modification times.
    let copy = work.join("checkpoint");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(model).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
    }
    let program = env!("CARGO_BIN_EXE_mlxcel-compile");
    let mut command = match day {
        Some(day) => {
            let mut command = Command::new("faketime");
            command.arg(day).arg(program);
            command
        }
        None => Command::new(program),
    };
    let output = command
        // Few entry points, because everything is compiled twice.
        .args([
            "--model",
            "checkpoint",
            "--target",
            targets,
            "--ctx-size",
            "64",
            "--chunk",
            "32",
            "--out",
            "bundle",
        ])
        .current_dir(&work)
        .env("HOME", &home)
        .env("USER", user)
        .env("LOGNAME", user)
        .env("TZ", zone)
        .env("LC_ALL", if day.is_some() { "C" } else { "de_DE.UTF-8" })
        .env("TMPDIR", &home)
        .env("MLXCEL_STORE", folder.join("store"))
        .env("OMP_NUM_THREADS", threads)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    work.join("bundle")
}

/// Returns every file below a folder with its bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o111, 0, "{} is executable", path.display());
                found.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn two_builds_have_equal_bytes() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/fixtures/gqa");
    let temporary = tempfile::tempdir().unwrap();
    let surroundings = |name: &str, user, zone, threads, day| Surroundings {
        folder: temporary.path().join(name),
        user,
        zone,
        threads,
        day,
    };
    let here = surroundings("one", "alice", "UTC", "1", None);
    let there = surroundings(
        "a much longer name/of another place",
        "bob",
        "Asia/Tokyo",
        "2",
        Some("2031-02-03 04:05:06"),
    );
    // One target with kernels, and one without.
    let targets = "cpu-x86-64-v3,cuda";
    let [first, second] = [&here, &there].map(|surroundings| files(&built(surroundings, &model, targets)));
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    assert!(first == second, "the same names and other bytes");
    // The manifest has the requirements that the PTX states.
    let manifest = first.iter().find(|(path, _)| path.ends_with("manifest.toml")).unwrap();
    let manifest = String::from_utf8(manifest.1.clone()).unwrap();
    assert!(
        manifest.contains("[targets.cuda.gpu]\ncompute_capability = \"8.0\"\nptx = \"7.6\"\n"),
        "{manifest}"
    );
    // The bundle contains nothing of its surroundings.
    let secrets = [
        "alice",
        "bob",
        "much longer name",
        "Tokyo",
        env!("CARGO_MANIFEST_DIR"),
        temporary.path().to_str().unwrap(),
    ];
    for (path, bytes) in first.iter().chain(&second) {
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} has {secret}", path.display());
        }
    }
}
