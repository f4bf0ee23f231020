//! Programs that are refused.

use super::*;
use crate::manifest::{
    Golden,
    entry::{ArgumentKind, ResultKind},
    program::BundleKind,
    sample,
};

/// Returns why a manifest of a program is refused after a change.
#[track_caller]
fn refused<T>(change: impl FnOnce(&mut Manifest) -> T) -> String {
    let mut manifest = sample::program("x86_64", Blob::of(b"vmfb"));
    change(&mut manifest);
    match manifest.validate() {
        Err(Error::Invalid(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

/// Returns why a manifest is refused after a change of its function.
#[track_caller]
fn refused_function<T>(change: impl FnOnce(&mut Entry) -> T) -> String {
    let problem = refused(|m| change(&mut m.targets.get_mut("cpu").unwrap().entries[0]));
    problem.strip_prefix("target cpu: ").unwrap().to_owned()
}

#[test]
fn a_program_round_trips() {
    let program = sample::program("x86_64", Blob::of(b"vmfb"));
    let text = program.render().unwrap();
    assert_eq!(Manifest::parse(&text).unwrap(), program);
    let functions = program.functions().unwrap();
    let names: Vec<_> = functions[0].inputs().map(|(name, _)| name).collect();
    assert_eq!(names, ["w", "x"]);
    assert_eq!(
        program.model_spec().unwrap_err().to_string(),
        "found the program step, expected a language model\n\
         hint: `mlxcel-bundle inspect BUNDLE` shows its inputs, and `mlxcel-run BUNDLE --input NAME=@FILE` runs it"
    );
    assert_eq!(
        manifest().functions().unwrap_err().to_string(),
        "found the language model tiny, expected a program\nhint: run it with `mlxcel-run BUNDLE -p TEXT`"
    );
}

#[test]
fn each_kind_has_its_parts_alone() {
    assert_eq!(refused(|m| m.program = None), "a program needs no plan, but `program`");
    assert_eq!(refused(|m| m.plan = manifest().plan), "a program needs no plan, but `program`");
    assert_eq!(refused(|m| m.kind = BundleKind::Model), "a model needs a plan and no program");
    assert_eq!(
        refused(|m| m.family = "llama".into()),
        "a program has family, replays or files, expected none"
    );
    assert_eq!(refused(|m| m.format = 5), "format 5 has a program, expected none before format 6");
    assert_eq!(
        refused(|m| m.targets.get_mut("cpu").unwrap().step_bytes = 1),
        "target cpu: found step_bytes, serving, rewind or packing, expected none in a program"
    );
    let model = |change: fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        manifest.validate().unwrap_err().to_string().lines().next().unwrap().to_owned()
    };
    assert_eq!(
        model(|m| m.targets.get_mut("cpu").unwrap().entries.push(sample::function())),
        "invalid manifest: target cpu: entry `step` is a function, expected none in a model"
    );
    assert_eq!(model(|m| m.goldens.push(golden())), "invalid manifest: a model has goldens, expected none");
}

#[test]
fn functions() {
    assert_eq!(
        refused_function(|f| f.role = Role::Best { rows: 1 }),
        "entry step is no function, expected one in a program"
    );
    assert_eq!(
        refused_function(|f| f.name = "a\nb".into()),
        "name of a function is `a\\nb`, expected 1 to 255 bytes without control characters"
    );
    assert_eq!(
        refused_function(|f| f.arguments[1].kind = ArgumentKind::Tokens),
        "function step takes tokens, expected none"
    );
    assert_eq!(
        refused_function(|f| f.results[1].kind = ResultKind::Logits),
        "function step gives logits, expected an output"
    );
    assert_eq!(
        refused_function(|f| f.arguments[1].name = Some("w".into())),
        "function step has two of argument `w`"
    );
    // An argument without a name takes the name that it is called by.
    assert_eq!(
        refused_function(|f| (f.arguments[0].name, f.arguments[1].name) = (Some("arg1".into()), None)),
        "function step has two of argument `arg1`"
    );
    assert_eq!(
        refused_function(|f| f.arguments[1].shape = vec![1; 33]),
        "an argument of function step has 33 dimensions, expected at most 32"
    );
    assert_eq!(
        refused_function(|f| f.results[1].shape = vec![1 << 40, 1 << 40]),
        "a result of function step is f32[1099511627776,1099511627776]: its size overflows or is not whole bytes"
    );
    assert_eq!(
        refused_function(|f| f.work = u64::MAX),
        "work of function step is 18446744073709551615: it is too large"
    );
    assert_eq!(
        refused(|m| m.targets.get_mut("cpu").unwrap().entries.clear()),
        "target cpu: no entry, expected at least one"
    );
    let other = refused(|m| {
        let mut cuda = m.targets["cpu"].clone();
        cuda.entries[0].arguments[1].shape = vec![99];
        m.targets.insert("cpu-x86-64-v3".into(), cuda)
    });
    assert_eq!(other, "target cpu-x86-64-v3 has other functions than target cpu, expected the same");
}

#[test]
fn states() {
    assert_eq!(refused_function(|f| f.arguments.pop()), "function step has 1 states and 0 storages for them");
    assert_eq!(
        refused_function(|f| f.arguments.swap(1, 2)),
        "an argument of function step follows a storage, expected storages last"
    );
    assert_eq!(
        refused_function(|f| f.arguments[0].kind = ArgumentKind::State { result: 1 }),
        "state of function step is f32[100], and result 1 is f32[]"
    );
    assert_eq!(
        refused_function(|f| f.arguments[2].kind = ArgumentKind::Storage { result: 9 }),
        "storage of function step is f32[100], and result 9 is no such result"
    );
    assert_eq!(
        refused_function(|f| f.arguments[1].kind = ArgumentKind::State { result: 0 }),
        "function step has two of state for result 0"
    );
    assert_eq!(
        refused_function(|f| f.arguments[2].name = Some("w2".into())),
        "a storage of function step has a name, expected none"
    );
}

fn golden() -> Golden {
    let blob = Blob::of(b"");
    Golden { function: "step".into(), rtol: 1e-5, atol: 0.0, inputs: blob, outputs: blob }
}

#[test]
fn goldens() {
    let with = |change: fn(&mut Golden)| {
        let mut golden = golden();
        change(&mut golden);
        refused(|m| m.goldens.push(golden))
    };
    assert_eq!(with(|g| g.function = "main".into()), "a golden is of function `main`, which is not there");
    assert_eq!(with(|g| g.rtol = f64::NAN), "a golden has the tolerance NaN, expected 0 or more");
    assert_eq!(with(|g| g.atol = -1.0), "a golden has the tolerance -1, expected 0 or more");
    assert_eq!(
        with(|g| g.outputs.size = 1 << 40),
        "outputs of golden 1 has 1099511627776 bytes, expected 0: inputs of golden 1 is the same blob"
    );
}
