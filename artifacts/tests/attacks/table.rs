//! Hostile inputs and their messages, written to `table.snap` for review.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
};

use mlxcel_artifacts::{Bundle, BundleWriter, Digest, PublicKey, SecretKey, report};
use tar::EntryType;

use crate::{CONFIG, VMFB, Victim, WEIGHTS, archives::Exported};

/// A damage, and the function that does it.
type Case = (&'static str, Box<dyn Fn(&Victim)>);

/// Edits the manifest.
fn edit(what: &'static str, from: &'static str, to: impl Into<String>) -> Case {
    let to = to.into();
    (what, Box::new(move |victim: &Victim| victim.edit(from, &to)))
}

/// Edits the manifest in several places.
fn edits(what: &'static str, changes: &'static [(&'static str, &'static str)]) -> Case {
    (what, Box::new(|victim: &Victim| changes.iter().for_each(|(from, to)| victim.edit(from, to))))
}

/// Changes the file of a blob.
fn blob(what: &'static str, bytes: &'static [u8], change: impl Fn(&Path) + 'static) -> Case {
    (what, Box::new(move |victim: &Victim| change(&victim.blob(bytes))))
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Damages bundles.
fn bundles() -> Vec<Case> {
    [edited_manifests(), edited_entries(), best_entries(), replaced_manifests(), changed_blobs()]
        .into_iter()
        .flatten()
        .collect()
}

/// Edits manifests.
fn edited_manifests() -> Vec<Case> {
    let name = "[files.\"config.json\"]";
    vec![
        edit("a newer format", "format = 7", "format = 8"),
        edit("no format", "format = 7", ""),
        edit("a format below the first", "format = 7", "format = 0"),
        edit("a field that is not known", "format = 7", "format = 7\nnovelty = 1"),
        edit("a field of another type", "context = 64", "context = \"64\""),
        edit("a name that leads out", name, "[files.\"../../.bashrc\"]"),
        edit("an absolute name", name, "[files.\"/etc/passwd\"]"),
        edit("a name within a folder", name, "[files.\"a/b\"]"),
        edit("an empty name", name, "[files.\"\"]"),
        edit("a name with control characters", name, "[files.\"a\\u001b[2Jb\"]"),
        edit("a digest that is a path", "digest = \"blake3:", "digest = \"blake3:../../../etc/passwd"),
        edit("a file listed twice", name, format!("{name}\nsize = 1\n{name}")),
        edit("one name in files and weights", "[weights.\"model.safetensors\"]", "[weights.\"config.json\"]"),
        edit("one blob of two sizes", "size = 100000", "size = 100001"),
        edit("a size beyond any disk", "size = 10", "size = 9223372036854775807"),
        edit("a size that overflows", "size = 10", "size = 99999999999999999999"),
        edit("a negative size", "size = 10", "size = -1"),
        edit("a tokenizer of 4 GB", "size = 23", "size = 4294967296"),
        edit("a shape beyond memory", "shape = [4, 8]", "shape = [4294967296, 4294967296, 4294967296]"),
        edit("a type that is none", "dtype = \"F32\"", "dtype = \"F33\""),
        edit("a batch", "context = 64", "batch = 1\ncontext = 64"),
        edit("no targets", "[targets.cpu]", "[elsewhere.cpu]"),
        edit("a driver that is none", "driver = \"local\"", "driver = \"webgpu\""),
        edit("an architecture with control characters", "arch = \"x86_64\"", "arch = \"x86_64\\u0007\""),
        edit("a flag with a line of its own", "O3\"", "O3\\n--iree-input=evil\""),
        edit(
            "terminal controls in the model's name",
            "model = \"tiny\"",
            "model = \"\\u001b]0;owned\\u0007\"",
        ),
    ]
}

/// The cache in the manifest.
const SERVING: &str = "[targets.cpu.serving]\npage = 64\nexact = true\n";
const POOL: &str = "[[targets.cpu.serving.pools]]\n";
const PART: &str = "[[targets.cpu.serving.pools.parts]]\ndtype = \"F32\"\nshape = [2, 2, 64, 8]\n";

/// An entry for the best tokens of `ROWS` rows of logits.
const BEST: &str = "[[targets.cpu.entries]]
name = \"best_ROWS\"

[targets.cpu.entries.role.best]
rows = ROWS

[[targets.cpu.entries.arguments]]
kind = \"logits\"
dtype = \"F32\"
shape = [ROWS, 100]

[[targets.cpu.entries.arguments]]
kind = \"selected_count\"
dtype = \"I32\"
shape = [1]

[[targets.cpu.entries.results]]
kind = \"best_tokens\"
dtype = \"I32\"
shape = [ROWS, 64]

[[targets.cpu.entries.results]]
kind = \"best_logits\"
dtype = \"F32\"
shape = [ROWS, 64]

[[targets.cpu.entries.results]]
kind = \"log_sum_exp\"
dtype = \"F32\"
shape = [ROWS]

";

/// Adds an entry for the best tokens of so many rows, changed.
fn best(what: &'static str, rows: &str, from: &str, to: &str) -> Case {
    let (entries, entry) = ("[[targets.cpu.entries]]\n", BEST.replace("ROWS", rows));
    assert!(entry.contains(from), "no {from} in {entry}");
    edit(what, entries, entry.replace(from, to) + entries)
}

/// Adds entries for the best tokens.
fn best_entries() -> Vec<Case> {
    let logits = "logits\"\ndtype = \"F32\"\nshape = [2, 100]";
    vec![
        best("best tokens of logits that no step selects", "3", "", ""),
        best("best tokens of no rows", "0", "", ""),
        best("best tokens of more rows than numbers of rows", "9223372036854775807", "", ""),
        best("best tokens under another name", "2", "best_2", "step_2"),
        best("best tokens of a larger vocabulary", "2", "[2, 100]", "[2, 101]"),
        best("more best tokens than there are", "2", "[2, 64]", "[2, 65]"),
        best(
            "best tokens with the sizes of a step",
            "2",
            "rows = 2",
            "rows = 2\nsequences = 2\nselected = 2",
        ),
        best("best tokens of tokens", "2", logits, "tokens\"\ndtype = \"I32\"\nshape = [2]"),
    ]
}

/// Edits entry points and the cache.
fn edited_entries() -> Vec<Case> {
    let (step, prefill) = ("[targets.cpu.entries.role.step]", "[targets.cpu.entries.role.prefill]");
    let sizes = "rows = 4\nsequences = 2\nselected = 2";
    vec![
        edit("an entry of another name", "name = \"step_4\"", "name = \"main\""),
        edit("a context beyond its page tables", "context = 64", "context = 65"),
        edit("a step in format 2", "format = 7", "format = 2"),
        edits(
            "a step in format 2 that has the rest of it",
            &[
                ("format = 7", "format = 2"),
                ("context = 64", "batch = 1\ncontext = 64"),
                (SERVING, ""),
                (POOL, ""),
                (PART, ""),
            ],
        ),
        edits(
            "a prefill in format 7",
            &[
                ("name = \"step_4\"", "name = \"prefill_4\""),
                (
                    "[targets.cpu.entries.role.step]\nrows = 4\nsequences = 2\nselected = 2",
                    "[targets.cpu.entries.role.prefill]\ntokens = 4",
                ),
            ],
        ),
        edit("a role with the sizes of another", step, prefill),
        edits("no rows", &[("rows = 4", "rows = 0"), ("name = \"step_4\"", "name = \"step_0\"")]),
        edit("more rows than numbers of rows", "rows = 4", "rows = 9223372036854775807"),
        edit("no sequences", sizes, "rows = 4\nsequences = 0\nselected = 2"),
        edit("more sequences than rows", sizes, "rows = 4\nsequences = 5\nselected = 2"),
        edit("no selected rows", sizes, "rows = 4\nsequences = 2\nselected = 0"),
        edit(
            "rows that sequences do not divide",
            sizes,
            "rows = 4\nsequences = 3\nselected = 2\nuniform = true",
        ),
        edit("a page table of another length", "shape = [2, 1]", "shape = [2, 2]"),
        edit("begins of another number of sequences", "shape = [3]", "shape = [4]"),
        edit("a cache with a number of pages", "shape = [0, 2, 2, 64, 8]", "shape = [9, 2, 2, 64, 8]"),
        edit("a cache of a pool that is not there", "kind.cache]\npool = 0", "kind.cache]\npool = 1"),
        edit(
            "pages of a pool that is not there",
            "kind.pages]\npool = 0",
            "kind.pages]\npool = 18446744073709551615",
        ),
        edit("slots of a pool that is not there", "kind.pages]\npool = 0", "kind.slots]\npool = 7"),
        edit("one argument twice", "kind = \"positions\"", "kind = \"tokens\""),
        edit(
            "another argument in place of one",
            "dtype = \"I32\"\nshape = [1, 1]\n\n[targets.cpu.entries.arguments.kind.pages]\npool = 0",
            "kind = \"lengths\"\ndtype = \"I32\"\nshape = [1]",
        ),
        edit(
            "a result that is missing",
            "[[targets.cpu.entries.results]]\nkind = \"next_token\"\ndtype = \"I32\"\nshape = [1]\n\n",
            "",
        ),
        edits("no serving", &[(SERVING, ""), (POOL, ""), (PART, "")]),
        edit("pages of another size", "page = 64", "page = 65"),
        edit("a window of no positions", POOL, format!("{POOL}window = 0\n")),
        edit("a window beyond positions", POOL, format!("{POOL}window = 2147483648\n")),
        edit("two pools of one window", PART, format!("{PART}\n{POOL}{PART}")),
        edit("a pool that lists no tensors", PART, ""),
        edits("a pool without tensors", &[(POOL, "[[targets.cpu.serving.pools]]\nparts = []\n"), (PART, "")]),
        edit("a page without elements", PART, PART.replace("64, 8", "0, 8")),
        edit("a page beyond memory", PART, PART.replace("64, 8", "4294967296, 4294967296")),
    ]
}

/// Replaces or removes manifests.
fn replaced_manifests() -> Vec<Case> {
    let manifest = |change: fn(&Path)| move |victim: &Victim| change(&victim.path().join("manifest.toml"));
    vec![
        (
            "a manifest of 1 TB",
            Box::new(manifest(|path| File::create(path).unwrap().set_len(1 << 40).unwrap())),
        ),
        (
            "a manifest of 100,000 nested arrays",
            Box::new(manifest(|path| {
                fs::write(path, format!("format = 7\nmodel = {}", "[".repeat(100_000))).unwrap();
            })),
        ),
        (
            "a manifest of 60 MB that is one array",
            Box::new(manifest(|path| {
                fs::write(path, format!("format = 7\nmodel = [{}]", "0,".repeat(30_000_000))).unwrap();
            })),
        ),
        (
            "a manifest of 60 MB of nested tables",
            Box::new(manifest(|path| {
                let table = format!("[x{}]\n", ".x".repeat(60));
                fs::write(path, format!("format = 7\n{}", table.repeat(480_000))).unwrap();
            })),
        ),
        (
            "a manifest of millions of aliases",
            Box::new(manifest(|path| {
                let aliases = format!("\n[[parameters]]\naliases = [{}]", "\"\",".repeat(300_000));
                let text = fs::read_to_string(path).unwrap();
                fs::write(path, text + &aliases.repeat(14)).unwrap();
            })),
        ),
        (
            "a manifest of a million parameters",
            Box::new(manifest(|path| {
                let text = fs::read_to_string(path).unwrap();
                fs::write(path, text + &"\n[[parameters]]".repeat(1_000_000)).unwrap();
            })),
        ),
        (
            "a manifest that is cut off",
            Box::new(manifest(|path| {
                let text = fs::read(path).unwrap();
                fs::write(path, &text[..text.len() / 2]).unwrap();
            })),
        ),
        (
            "a manifest that is no text",
            Box::new(manifest(|path| fs::write(path, b"format = 3\n\xff").unwrap())),
        ),
        (
            "a manifest that is a link",
            Box::new(manifest(|path| {
                fs::rename(path, path.with_extension("elsewhere")).unwrap();
                symlink("manifest.elsewhere", path).unwrap();
            })),
        ),
        ("a manifest that is missing", Box::new(manifest(|path| fs::remove_file(path).unwrap()))),
    ]
}

/// Changes the files of blobs.
fn changed_blobs() -> Vec<Case> {
    let flipped = |bytes: &[u8]| {
        let (at, mut bytes) = (bytes.len() / 2, bytes.to_vec());
        bytes[at] ^= 1;
        bytes
    };
    vec![
        (
            "blobs in another folder",
            Box::new(|victim| {
                let blobs = victim.path().join("blobs");
                fs::rename(&blobs, victim.folder.path().join("elsewhere")).unwrap();
                symlink("../elsewhere", blobs).unwrap();
            }),
        ),
        blob("a vmfb that is missing", VMFB, |path| fs::remove_file(path).unwrap()),
        blob("a vmfb that is cut off", VMFB, |path| replace(path, &VMFB[..5])),
        blob("a vmfb of other bytes", VMFB, move |path| replace(path, &flipped(VMFB))),
        blob("weights of other bytes", WEIGHTS, move |path| replace(path, &flipped(WEIGHTS))),
        blob("weights that have grown", WEIGHTS, |path| replace(path, &[WEIGHTS, b"more"].concat())),
        blob("a vmfb that is a link out", VMFB, |path| {
            fs::remove_file(path).unwrap();
            symlink("/etc/passwd", path).unwrap();
        }),
        blob("a vmfb that is endless", VMFB, |path| {
            fs::remove_file(path).unwrap();
            symlink("/dev/zero", path).unwrap();
        }),
        blob("a vmfb that is a folder", VMFB, |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        (
            "two blobs exchanged",
            Box::new(|victim| {
                let (a, b) = (victim.blob(VMFB), victim.blob(CONFIG));
                replace(&a, CONFIG);
                replace(&b, VMFB);
            }),
        ),
    ]
}

/// Damages archives, and returns the messages.
fn archives() -> Vec<(&'static str, String)> {
    let exported = Exported::new();
    let entry = |name: &str, kind, bytes: &[u8]| (name.to_owned(), kind, bytes.to_vec());
    let blob = |bytes: &[u8]| format!("blobs/{}", Digest::of(bytes).hex());
    vec![
        ("an archive with nothing in it", exported.refused(Vec::clear)),
        ("one that begins with a blob", exported.refused(|parts| parts.rotate_left(1))),
        ("an entry that leads out", exported.refused(|p| p.push(entry("../evil", EntryType::Regular, b"x")))),
        ("an absolute entry", exported.refused(|p| p.push(entry("/etc/evil", EntryType::Regular, b"x")))),
        (
            "a link among the entries",
            exported.refused(|p| p[1] = entry(&blob(VMFB), EntryType::Symlink, b"")),
        ),
        (
            "a header that renames the next",
            exported.refused(|p| {
                p.insert(1, entry("././@LongLink", EntryType::GNULongName, b"elsewhere"));
            }),
        ),
        ("a blob twice", exported.refused(|parts| parts.push(parts[1].clone()))),
        ("a blob that is missing", exported.refused(|parts| _ = parts.pop())),
        (
            "a blob of other bytes",
            exported.refused(|parts| {
                let last = parts.last_mut().unwrap();
                last.2[0] ^= 1;
            }),
        ),
    ]
}

/// Damages signatures, and returns the messages.
fn signatures() -> Vec<(&'static str, String)> {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let (secret, public) = (folder.path().join(name), folder.path().join(format!("{name}.pub")));
        SecretKey::generate(&secret, &public, None).unwrap();
        let secret = SecretKey::open(&secret, || unreachable!("the key has no password")).unwrap();
        (secret, PublicKey::find(public.to_str().unwrap()).unwrap())
    };
    let ((ours, public), (theirs, other)) = (key("ours"), key("theirs"));
    let ids = |text: String| text.replace(&public.id(), "OURS").replace(&other.id(), "THEIRS");
    let refused = |change: &dyn Fn(&Victim)| {
        let victim = Victim::new();
        change(&victim);
        let bundle = victim.open().unwrap();
        ids(report(&bundle.verify_signature(&public).unwrap_err()))
    };
    let signed =
        |victim: &Victim, key: &SecretKey| _ = victim.open().unwrap().sign(key, "a comment").unwrap();
    let change = |victim: &Victim, from: &str, to: &str| {
        let path = victim.path().join("manifest.toml.minisig");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    vec![
        ("no signature", refused(&|_| ())),
        ("a signature by another key", refused(&|victim| signed(victim, &theirs))),
        (
            "a signature over another manifest",
            refused(&|victim| {
                signed(victim, &ours);
                victim.edit("model = \"tiny\"", "model = \"evil\"");
            }),
        ),
        (
            "a signature with another comment",
            refused(&|victim| {
                signed(victim, &ours);
                change(victim, "a comment", "a release");
            }),
        ),
        (
            "a signature that is cut off",
            refused(&|victim| {
                signed(victim, &ours);
                change(victim, "trusted comment", "");
            }),
        ),
    ]
}

#[test]
fn every_input_has_its_message() {
    let mut rows: Vec<(&str, String)> = Vec::new();
    for (what, change) in bundles() {
        let victim = Victim::new();
        change(&victim);
        rows.push((
            what,
            report(&victim.open().err().unwrap_or_else(|| panic!("{what}: it opened")))
                .replace(victim.path().to_str().unwrap(), "BUNDLE"),
        ));
    }
    rows.extend(archives());
    rows.extend(signatures());
    assert!(rows.len() >= 40, "{} rows", rows.len());
    let table: String = rows
        .iter()
        .map(|(what, message)| format!("{what}\n    {}\n", message.replace('\n', "\n    ")))
        .collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(".");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("table", crate::masked(&table)));
}

#[test]
fn a_failed_import_leaves_nothing_behind() {
    let victim = Victim::new();
    let out = victim.folder.path().join("out");
    let to = Box::new(BundleWriter::create(&out).unwrap());
    assert!(Bundle::import(&mut &b"no archive"[..], Path::new("x"), to).is_err());
    assert!(!out.exists());
}
