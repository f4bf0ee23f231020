//! The build key: a digest of everything that determines a compiled module.

use mlxcel_artifacts::{Digest, FORMAT};
use mlxcel_emitter::Object;

use crate::{
    build::{toolchain::Toolchain, unit::Unit},
    target::ResolvedTarget,
};

/// Revision of how this crate runs the compiler. Raised by changes that no other field of the key shows.
const REVISION: u64 = 4;

/// Returns the key of `unit` compiled for `target` by `toolchain`.
///
/// Structs are destructured without `..`. A new field is a compile error here until it is decided whether it belongs in
/// the key.
pub(crate) fn build_key(unit: &Unit<'_>, target: &ResolvedTarget, toolchain: &Toolchain) -> Digest {
    let Unit { mlir, objects, flags: more_flags, loops_in_place } = unit;
    // The compiler does not see names: targets with the same flags share a module. The MLIR shows the numerics.
    let ResolvedTarget { name: _, driver, arch, cpu_features, flags, numerics: _ } = target;
    // The digest identifies the compiler, wherever it is installed. Verifying, threads and the time it has change nothing in it.
    let Toolchain { executable: _, version, digest, is_lean: _, time_limit: _ } = toolchain;

    let mut key = Fields::default();
    key.text("mlxcel build key");
    key.number(REVISION);
    key.number(FORMAT.into());
    key.text(version);
    key.text(&digest.to_string());
    key.text(&format!("{driver:?}"));
    key.text(arch);
    key.texts(cpu_features);
    key.texts(flags);
    key.texts(more_flags);
    key.number(objects.len() as u64);
    for Object { name, bytes } in *objects {
        key.text(name);
        key.text(&Digest::of(bytes).to_string());
    }
    key.number(u64::from(*loops_in_place));
    key.text(mlir);
    Digest::of(&key.0)
}

/// Serialized fields. Each text follows its length, so different fields never give the same bytes.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn texts(&mut self, texts: &[impl AsRef<str>]) {
        self.number(texts.len() as u64);
        texts.iter().for_each(|text| self.text(text.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use mlxcel_artifacts::Driver;
    use mlxcel_emitter::Numerics;

    use super::*;

    /// What a key is made from, so that a test can change one thing.
    #[derive(Clone)]
    struct Inputs {
        mlir: String,
        objects: Vec<Object>,
        flags: Vec<&'static str>,
        loops_in_place: bool,
        target: ResolvedTarget,
        toolchain: Toolchain,
    }

    fn inputs() -> Inputs {
        let object =
            |name: &'static str, bytes: &'static [u8]| Object { name: name.into(), bytes: bytes.into() };
        Inputs {
            mlir: "module {}".into(),
            objects: vec![object("a.o", b"a"), object("b.o", b"b")],
            flags: vec!["--three"],
            loops_in_place: false,
            target: ResolvedTarget {
                name: "cpu".into(),
                driver: Driver::Local,
                arch: "x86_64".into(),
                cpu_features: vec!["avx2".into(), "fma".into()],
                flags: vec!["--one".into(), "--two".into()],
                numerics: Numerics::default(),
            },
            toolchain: Toolchain {
                executable: "/usr/bin/iree-compile".into(),
                version: "3.13.0".into(),
                digest: Digest::of(b"compiler"),
                is_lean: false,
                time_limit: None,
            },
        }
    }

    fn key(change: impl FnOnce(&mut Inputs)) -> Digest {
        let mut inputs = inputs();
        change(&mut inputs);
        let Inputs { mlir, objects, flags, loops_in_place, target, toolchain } = inputs;
        let unit = Unit { mlir: &mlir, objects: &objects, flags: &flags, loops_in_place };
        build_key(&unit, &target, &toolchain)
    }

    #[test]
    fn every_field_changes_the_key() {
        let keys = [
            key(|_| {}),
            key(|i| i.mlir.push(' ')),
            key(|i| i.objects[0].name = "c.o".into()),
            key(|i| i.objects[0].bytes = b"c".into()),
            key(|i| i.objects.truncate(1)),
            key(|i| i.target.driver = Driver::Cuda),
            key(|i| i.target.arch = "aarch64".into()),
            key(|i| drop(i.target.cpu_features.pop())),
            key(|i| i.target.cpu_features = vec!["avx2fma".into()]),
            key(|i| i.target.flags.reverse()),
            key(|i| i.target.flags = vec!["--one--two".into()]),
            key(|i| i.flags.clear()),
            key(|i| i.loops_in_place = true),
            key(|i| i.target.flags.extend(i.flags.drain(..).map(Into::into))),
            key(|i| {
                // Moving an element to the next list gives another key.
                let moved = i.target.flags.remove(0);
                i.target.cpu_features.push(moved);
            }),
            key(|i| i.toolchain.version = "3.14.0".into()),
            key(|i| i.toolchain.digest = Digest::of(b"another")),
        ];
        let different: HashSet<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn names_and_paths_do_not_change_the_key() {
        assert_eq!(key(|i| i.target.name = "cpu-x86-64-v3".into()), key(|_| {}));
        assert_eq!(key(|i| i.toolchain.executable = "/opt/iree-compile".into()), key(|_| {}));
        assert_eq!(key(|i| i.toolchain.is_lean = true), key(|_| {}));
    }
}
