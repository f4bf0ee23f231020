//! Programs of a few lines, for tests of what becomes of them.

use crate::import::{ProgramOptions, import_program};

/// Returns the MLIR of a function that takes `%0`, `%1` and so on, and returns `%r` of these lines, or the error.
pub(super) fn replayed(arguments: &[&str], lines: &str, result: &str) -> Result<String, String> {
    replayed_for(&ProgramOptions::default(), arguments, lines, result)
}

/// The same with these options.
pub(super) fn replayed_for(
    options: &ProgramOptions,
    arguments: &[&str],
    lines: &str,
    result: &str,
) -> Result<String, String> {
    let declared: Vec<_> =
        arguments.iter().enumerate().map(|(index, ty)| format!("%{index}: {ty}")).collect();
    let (types, declared) = (arguments.join(", "), declared.join(", "));
    let text = format!(
        r#""builtin.module"() ({{
          "func.func"() <{{function_type = ({types}) -> {result}, sym_name = "main"}}> ({{
          ^bb0({declared}):
            {lines}
            "func.return"(%r) : ({result}) -> ()
          }}) : () -> ()
        }}) : () -> ()"#
    );
    import_program(&text, options).map(|module| module.mlir).map_err(|error| error.to_string())
}

/// Returns the lines of the MLIR that have a text.
pub(super) fn lines_with<'t>(mlir: &'t str, text: &str) -> Vec<&'t str> {
    mlir.lines().filter(|line| line.contains(text)).map(str::trim).collect()
}
