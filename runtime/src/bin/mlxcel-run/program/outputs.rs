//! Where the results of a function go: files, or standard output in short.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use mlxcel_artifacts::{Tensor, write_tensors};
use mlxcel_runtime::nearest;

/// The most elements of a result that are shown.
const SHOWN: usize = 8;

/// A place for results.
#[derive(Debug, PartialEq)]
pub(super) enum Output {
    /// All results, in short.
    Stdout,
    /// All results in a file.
    All(PathBuf),
    /// One result in a file.
    One(String, PathBuf),
}

/// Reads the `--output` options, of which there may be none.
pub(super) fn parse(outputs: &[PathBuf], names: &[String]) -> Result<Vec<Output>> {
    if outputs.is_empty() {
        return Ok(vec![Output::Stdout]);
    }
    outputs.iter().map(|output| one(&output.to_string_lossy(), names)).collect()
}

fn one(text: &str, names: &[String]) -> Result<Output> {
    if text == "-" {
        return Ok(Output::Stdout);
    }
    if let Some(path) = text.strip_prefix('@') {
        return Ok(Output::All(path.into()));
    }
    let path_of = |name: &String| text.strip_prefix(name.as_str())?.strip_prefix("=@");
    let known = names.iter().filter_map(|name| Some((name, path_of(name)?)));
    if let Some((name, path)) = known.min_by_key(|(_, path)| path.len()) {
        return Ok(Output::One(name.clone(), path.into()));
    }
    match text.split_once("=@") {
        Some((name, _)) => bail!(
            "found no result `{}`, expected {}\nhint: `mlxcel-bundle inspect BUNDLE` shows the results",
            name.escape_debug(),
            nearest(name, names.iter().map(String::as_str))
        ),
        None => bail!(
            "found --output `{}`, expected @FILE.npz, NAME=@FILE.npy or -\nhint: the results are {}",
            text.escape_debug(),
            names.join(", ")
        ),
    }
}

/// Writes results to a place. Returns what is for standard output.
pub(super) fn write(output: &Output, results: &BTreeMap<String, Tensor>, names: &[String]) -> Result<String> {
    match output {
        Output::Stdout => {
            let in_order = names.iter().filter_map(|name| Some((name, results.get(name)?)));
            return Ok(in_order.map(|(name, tensor)| line(name, tensor)).collect());
        }
        Output::All(path) => write_tensors(path, results)?,
        Output::One(name, path) => {
            let one = results.get_key_value(name).map(|(name, tensor)| (name.clone(), tensor.clone()));
            write_tensors(path, &one.into_iter().collect())?;
        }
    }
    Ok(String::new())
}

/// Returns whether a place can hold the results, as far as its name says.
pub(super) fn check(output: &Output, count: usize) -> Result<()> {
    let (path, count) = match output {
        Output::Stdout => return Ok(()),
        Output::All(path) => (path, count),
        Output::One(_, path) => (path, 1),
    };
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let fits = matches!(end, "npz" | "safetensors") || end == "npy" && count == 1;
    if !fits {
        let path = path.display();
        bail!(
            "found --output {path} for {count} results, expected a name that ends in .npz or .safetensors\n\
               hint: .npy holds one"
        );
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("found no folder {}, expected one for --output\nhint: make it with mkdir", folder.display());
    }
    Ok(())
}

/// Shows a result: `w f32[100] 0.1 0.2 …`.
fn line(name: &str, tensor: &Tensor) -> String {
    let mut line = format!("{name} {tensor}");
    let mut elements = tensor.elements();
    for element in elements.by_ref().take(SHOWN) {
        // Writing to a string does not fail.
        _ = write!(line, " {element}");
    }
    if elements.next().is_some() {
        line.push_str(" …");
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Output, String> {
        let names = ["loss".to_owned(), "p['w']".to_owned(), "p".to_owned()];
        one(text, &names).map_err(|error| error.to_string())
    }

    #[test]
    fn places_of_results() {
        assert_eq!(parsed("-").unwrap(), Output::Stdout);
        assert_eq!(parsed("@out.npz").unwrap(), Output::All("out.npz".into()));
        assert_eq!(parsed("p['w']=@w.npy").unwrap(), Output::One("p['w']".into(), "w.npy".into()));
        assert_eq!(
            parsed("lost=@x.npy").unwrap_err(),
            "found no result `lost`, expected `loss`, `p['w']` or `p`\n\
             hint: `mlxcel-bundle inspect BUNDLE` shows the results"
        );
        assert_eq!(
            parsed("out.npz").unwrap_err(),
            "found --output `out.npz`, expected @FILE.npz, NAME=@FILE.npy or -\nhint: the results are loss, p['w'], p"
        );
        assert!(check(&parsed("@out.npy").unwrap(), 3).is_err());
        assert!(check(&parsed("@out.npy").unwrap(), 1).is_ok());
        assert!(check(&parsed("@no/such/folder/out.npz").unwrap(), 1).is_err());
    }

    #[test]
    fn long_results_are_cut() {
        let numbers: Vec<i32> = (0..100).collect();
        assert_eq!(line("x", &Tensor::of(&[100], &numbers).unwrap()), "x i32[100] 0 1 2 3 4 5 6 7 …\n");
        assert_eq!(line("loss", &Tensor::scalar(0.5f32)), "loss f32[] 0.5\n");
        assert_eq!(line("none", &Tensor::of(&[0], &[0u8; 0]).unwrap()), "none u8[0]\n");
    }
}
