//! Targets for GPUs that the runtime has no driver for: they compile, and every program says that nobody runs them here.

use std::{path::Path, process::Command};

use mlxcel_artifacts::{Driver, NEVER_RUN};
use mlxcel_compiler_driver::{Request, Target, WeightSource};

use crate::{
    programs_run::{self, exported},
    real::{built, changed, fixtures, is_full, program, request},
};

/// Returns the targets that nothing here runs.
fn targets() -> Vec<Target> {
    let mut targets = Target::all().unwrap();
    targets.retain(|target| !target.driver.is_run());
    targets
}

/// Returns what a program says of a bundle, without its path, and whether it succeeds.
fn said(name: &str, arguments: &[&str], bundle: &Path) -> (String, bool) {
    let output = Command::new(program(name)).args(arguments).arg(bundle).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (said.replace(&bundle.display().to_string(), "BUNDLE"), output.status.success())
}

#[test]
fn a_model_compiles_and_is_refused_by_name() {
    // One by default, and one layer: those of AMD take a compiler half a minute. A program compiles for each.
    let targets = targets();
    let mut names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    if !is_full() {
        names = vec!["metal"];
    }
    let layers = |count: usize| format!("\"num_hidden_layers\": {count}");
    let folder = changed(&fixtures().join("qwen3-tied"), &[(&layers(2), &layers(1))]);
    let weights = WeightSource::Random(1);
    let built = built(&Request { chunk: Some(8), weights, ..request(folder.path(), &names) });
    let bundle = built.bundle.path();
    let mut drivers: Vec<Driver> =
        built.bundle.manifest().targets.values().map(|target| target.driver).collect();
    drivers.sort();
    drivers.dedup();
    assert_eq!(drivers, if is_full() { vec![Driver::Hip, Driver::Metal] } else { vec![Driver::Metal] });

    let (inspected, _) = said("mlxcel-bundle", &["inspect"], bundle);
    let (checked, fits) = said("mlxcel-bundle", &["check"], bundle);
    for driver in drivers {
        assert!(inspected.contains(&format!("{driver} ({NEVER_RUN})")), "{inspected}");
        let reason = format!("refuse            {NEVER_RUN}: the runtime has no driver {driver}");
        assert!(checked.contains(&reason), "{checked}");
    }
    assert!(!fits && checked.contains("no target runs on the machine"), "{checked}");
    if !is_full() {
        let (run, ran) = said("mlxcel-run", &["--tokens", "1,2", "-n", "1"], bundle);
        assert!(!ran);
        insta::assert_snapshot!(run, @"
        note: the bundle BUNDLE was not compiled here and is not signed: its code runs with your rights
        hint: --require-signature KEY runs only bundles that are signed with the key
        error: no target of this bundle runs here
          metal: compiles; never run by us: the runtime has no driver metal
        hint: compile the bundle for this machine, e.g. with --target cpu
        ");
    }
}

#[test]
fn a_program_compiles_for_each() {
    let names: Vec<String> = targets().into_iter().map(|target| target.name).collect();
    assert_eq!(names, ["metal", "rocm-gfx1100", "rocm-gfx90a", "rocm-gfx942"]);
    let built =
        programs_run::built(&exported("adam.jax"), |request| request.targets = names.clone()).unwrap();
    for name in names {
        let target = &built.bundle.manifest().targets[&name];
        let code = std::fs::read(built.bundle.blob_path(&target.vmfb)).unwrap();
        let has = |word: &str| code.windows(word.len()).any(|bytes| bytes == word.as_bytes());
        // Metal gets source; the compiler names an AMD GPU in the code that it makes for it.
        match target.driver {
            Driver::Metal => assert!(has("using namespace metal;"), "{name}"),
            _ => assert!(has(name.trim_start_matches("rocm-")), "{name}"),
        }
    }
}
