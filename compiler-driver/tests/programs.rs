//! StableHLO programs that JAX exported.

use std::{fs, path::PathBuf};

use mlxcel_artifacts::{Store, report};
use mlxcel_compiler_driver::{Cancel, CompilerLocation, explain_program};

fn programs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Explains a program with the real compiler. Paths are those below the folder of the program.
fn explained(path: &std::path::Path) -> Result<String, String> {
    let store = tempfile::tempdir().unwrap();
    let store = Store::new(store.path(), None).unwrap();
    let folder = format!("{}/", path.parent().unwrap().display());
    let text = explain_program(path, &CompilerLocation::from_env(), &store, &Cancel::new());
    text.map(|text| text.replace(&folder, "")).map_err(|error| report(&error).replace(&folder, ""))
}

/// Writes a program into a folder of the test's own and explains it.
fn explained_bytes(name: &str, bytes: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    explained(&path)
}

#[test]
fn a_step_is_explained_in_every_form() {
    let text = explained(&programs().join("logistic.jax")).unwrap();
    insta::assert_snapshot!(text, @r#"
    program   logistic.jax
    form      jax.export file of StableHLO 1.15.0
    ops       29: multiply 5, add 4, broadcast_in_dim 4, constant 4, divide 3, dot_general 2, reduce 2, subtract 2, exponential 1, log_plus_one 1, negate 1

    function  main
    argument  p['b']          f32[]          given away for result[0]['b']
    argument  p['w']          f32[100]       given away for result[0]['w']
    argument  x               f32[1000,100]
    argument  y               f32[1000]
    result    result[0]['b']  f32[]
    result    result[0]['w']  f32[100]
    result    result[1]       f32[]
    "#);
    let without_form =
        |text: String| text.lines().skip(2).map(|line| line.to_owned() + "\n").collect::<String>();
    let expected = without_form(text);
    for name in ["logistic.mlir", "logistic.mlirbc"] {
        assert_eq!(without_form(explained(&programs().join(name)).unwrap()), expected, "{name}");
    }
}

#[test]
fn a_gradient_in_the_file_is_not_the_program() {
    insta::assert_snapshot!(explained(&programs().join("gradient.jax")).unwrap(), @r#"
    program   gradient.jax
    form      jax.export file of StableHLO 1.15.0
    ops       4: broadcast_in_dim 1, constant 1, multiply 1, sine 1

    function  main
    argument  x       f32[3]
    result    result  f32[3]
    "#);
}

#[test]
fn a_dimension_that_is_known_later_is_shown() {
    insta::assert_snapshot!(explained(&programs().join("symbolic.mlirbc")).unwrap(), @r#"
    program   symbolic.mlirbc
    form      portable artifact of StableHLO 1.15.0
    ops       20: compare 6, select 4, constant 3, func.call 2, custom_call 1, dot_general 1, get_dimension_size 1, sort 1, transpose 1
    refused   main: argument 0 "arg0": found tensor<?x64xf32>, expected a fixed shape
    hint      --shape rows=SIZE

    function  main
    argument  arg0    f32[?,64]
    result    result  f32[?,?]
    "#);
}

#[test]
fn what_is_no_program_is_refused() {
    let artifact = fs::read(programs().join("logistic.mlirbc")).unwrap();
    let refused = |name: &str, bytes: &[u8]| explained_bytes(name, bytes).unwrap_err();
    let all = [
        refused("empty.mlir", b""),
        refused("notes.txt", b"a list of things"),
        refused("cut.mlirbc", &artifact[..900]),
        refused("open.mlir", b"module @m {\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"),
        refused(
            "other.mlir",
            b"module @m {\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n    %0 = foo.bar %a : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n",
        ),
        refused(
            "types.mlir",
            b"module @m {\n  func.func @main(%a: tensor<4xf32>, %b: tensor<5xf32>) -> tensor<4xf32> {\n    %0 = stablehlo.add %a, %b : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n",
        ),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    error: empty.mlir: 0 bytes, expected a StableHLO program
    hint: export it again
    error: notes.txt: neither text nor MLIR bytecode, expected a StableHLO program
    hint: write one with jax.export, stablehlo.serialize_portable_artifact or as text
    error: cut.mlirbc: found no valid StableHLO, expected some
      missing data for top-level section: String (0)
    hint: if the file is whole, export it again
    error: open.mlir: found no valid StableHLO, expected some
      line 2, column 56: expected operation name in quotes
    hint: if the file is whole, export it again
    error: other.mlir: found no valid StableHLO, expected some
      line 3, column 10: Dialect `foo' not found for custom op 'foo.bar'
    hint: if the file is whole, export it again
    error: types.mlir: found no valid StableHLO, expected some
      line 3, column 28: use of value '%b' expects different type than prior uses: 'tensor<4xf32>' vs 'tensor<5xf32>'
    hint: if the file is whole, export it again
    "#);
}
