//! Explains a program to people, for `mlxcel-compile explain`.

use std::{collections::BTreeMap, path::Path};

use mlxcel_artifacts::{Cancel, Store, entry::result_name, printable};
use mlxcel_emitter::{
    ImportedArgument, ImportedFunction, ImportedProgram, ImportedResult, ProgramOptions, import_program,
};

use super::read::{ReadProgram, read};
use crate::{
    build::{compiler_location::CompilerLocation, toolchain::Toolchain},
    error::Error,
};

/// The width of the column that says what a line is about: a `function` at most.
const FIRST_COLUMN: usize = 8;

/// Explains the program at a path: its form, its ops, why it does not compile as it is, and for each function its arguments and
/// results.
///
/// # Errors
/// There is no compiler, the file cannot be read or is no StableHLO program, or `cancel` was triggered.
pub fn explain_program(
    path: &Path,
    compiler: &CompilerLocation,
    store: &Store,
    cancel: &Cancel,
) -> Result<String, Error> {
    let toolchain = Toolchain::find(compiler, store)?;
    let program = read(path, &toolchain, &|| cancel.is_cancelled())?;
    let refused = import_program(&program.text, &ProgramOptions::default()).err();
    Ok(text(path, &program, refused.as_ref().map(refusal)))
}

fn text(
    path: &Path,
    ReadProgram { form, program, text: _ }: &ReadProgram,
    refused: Option<String>,
) -> String {
    let ImportedProgram { functions, ops } = program;
    let head = [("program", path.display().to_string()), ("form", form.to_string()), ("ops", census(ops))];
    let head = head.map(|(name, text)| format!("{name:0$}  {text}\n", FIRST_COLUMN));
    let functions = functions.iter().map(|function| format!("\n{}", of_function(function)));
    head.into_iter().chain(refused).chain(functions).collect()
}

/// Returns why a program does not compile as it is, in lines of the first column.
fn refusal(error: &mlxcel_emitter::Error) -> String {
    let words = error.to_string();
    let (problem, hint) = words.split_once("\nhint: ").unwrap_or((&words, ""));
    let line = |name: &str, text: &str| {
        if text.is_empty() { String::new() } else { format!("{name:0$}  {text}\n", FIRST_COLUMN) }
    };
    line("refused", problem) + &line("hint", hint)
}

/// Returns the lines of a function, in aligned columns.
fn of_function(function: &ImportedFunction) -> String {
    let ImportedFunction { name, arguments, results } = function;
    let name_of =
        |index: usize, result: &ImportedResult| printable(&result_name(result.name.as_deref(), index));
    let argument = |(index, argument): (usize, &ImportedArgument)| {
        let donated = argument.donated_to.and_then(|index| Some(name_of(index, results.get(index)?)));
        [
            "argument".to_owned(),
            printable(&argument.shown_name(index)),
            type_text(&argument.ty),
            donated.map_or_else(String::new, |result| format!("given away for {result}")),
        ]
    };
    let result = |(index, result): (usize, &ImportedResult)| {
        ["result".to_owned(), name_of(index, result), type_text(&result.ty), String::new()]
    };
    let rows: Vec<_> =
        arguments.iter().enumerate().map(argument).chain(results.iter().enumerate().map(result)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = format!("{:1$}  {name}\n", "function", FIRST_COLUMN);
    for [kind, name, ty, note] in &rows {
        let line = format!("{kind:0$}  {name:1$}  {ty:2$}  {note}", FIRST_COLUMN, width(1), width(2));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns ops with their numbers, the most frequent first: `5: add 3, dot_general 2`. StableHLO's have no prefix.
fn census(ops: &BTreeMap<String, usize>) -> String {
    let mut all: Vec<_> = ops.iter().collect();
    all.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
    let one = |(name, count): &(&String, &usize)| {
        format!("{} {count}", name.strip_prefix("stablehlo.").unwrap_or(name.as_str()))
    };
    let total: usize = ops.values().sum();
    format!("{total}: {}", all.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// Returns a type as bundles show it: `f32[1000,100]` for `tensor<1000x100xf32>`.
fn type_text(ty: &str) -> String {
    let inner = ty.strip_prefix("tensor<").and_then(|rest| rest.strip_suffix('>'));
    let Some(inner) = inner else { return ty.to_owned() };
    let mut dimensions = Vec::new();
    let mut rest = inner;
    while let Some((size, after)) = rest.split_once('x') {
        if size != "?" && !size.chars().all(|c| c.is_ascii_digit()) {
            break;
        }
        dimensions.push(size);
        rest = after;
    }
    format!("{rest}[{}]", dimensions.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::form::Form;

    #[test]
    fn types_read_as_in_bundles() {
        for (mlir, text) in [
            ("tensor<1000x100xf32>", "f32[1000,100]"),
            ("tensor<i1>", "i1[]"),
            ("tensor<?x64xcomplex<f32>>", "complex<f32>[?,64]"),
            ("tensor<4xf8E4M3FN>", "f8E4M3FN[4]"),
            ("!stablehlo.token", "!stablehlo.token"),
        ] {
            assert_eq!(type_text(mlir), text);
        }
    }

    #[test]
    fn a_function_has_columns_and_a_census() {
        let argument = |name: Option<&str>, ty: &str, donated_to| ImportedArgument {
            name: name.map(Into::into),
            ty: ty.into(),
            donated_to,
        };
        let function = ImportedFunction {
            name: "main".into(),
            arguments: vec![
                argument(Some("p['w']"), "tensor<100xf32>", Some(0)),
                argument(None, "tensor<1000x100xf32>", None),
            ],
            results: vec![
                ImportedResult { name: Some("result[0]['w']".into()), ty: "tensor<100xf32>".into() },
                ImportedResult { name: None, ty: "tensor<f32>".into() },
            ],
        };
        let ops = [("stablehlo.add", 1), ("chlo.top_k", 1), ("stablehlo.multiply", 3)];
        let ops = ops.map(|(name, count)| (name.to_owned(), count)).into();
        let program = ImportedProgram { functions: vec![function], ops };
        let read = ReadProgram { form: Form::Text, program, text: String::new() };
        insta::assert_snapshot!(text(Path::new("step.mlir"), &read, None), @r#"
        program   step.mlir
        form      MLIR text
        ops       5: multiply 3, chlo.top_k 1, add 1

        function  main
        argument  p['w']          f32[100]       given away for result[0]['w']
        argument  arg1            f32[1000,100]
        result    result[0]['w']  f32[100]
        result    result1         f32[]
        "#);
    }
}
