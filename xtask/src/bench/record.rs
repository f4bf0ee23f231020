//! Measurements that are written as they are made, so that an error later loses none of them.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::{Value, json};

/// The measurements of a run.
pub(crate) struct Record<T> {
    file: File,
    /// The file's name, for errors.
    name: String,
    /// Seconds since 1970 when the run began: a file keeps what earlier runs measured.
    run: u64,
    rows: Vec<T>,
}

impl<T: Serialize> Record<T> {
    fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let file = File::options().create(true).append(true).open(path).with_context(|| name.clone())?;
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(Self { file, name, run, rows: Vec::new() })
    }

    /// Appends a measurement to the file as a line of JSON.
    pub(crate) fn push(&mut self, row: T) -> Result<()> {
        let mut line = json!({ "run": self.run });
        match (&mut line, serde_json::to_value(&row)?) {
            (Value::Object(line), Value::Object(fields)) => line.extend(fields),
            (line, value) => line["value"] = value,
        }
        // One write a line, so that two programs' lines do not mix.
        let text = format!("{line}\n");
        self.file.write_all(text.as_bytes()).with_context(|| self.name.clone())?;
        self.rows.push(row);
        Ok(())
    }
}

/// Measures, and appends each measurement to `file`. Shows what was measured even if measuring ends with an error, which is
/// returned after that.
pub(crate) fn recorded<T: Serialize>(
    file: &Path,
    measure: impl FnOnce(&mut Record<T>) -> Result<()>,
    show: impl FnOnce(&[T]) -> Result<()>,
) -> Result<()> {
    let mut record = Record::open(file)?;
    eprintln!("measurements go to {}", record.name);
    let measured = measure(&mut record);
    if record.rows.is_empty() {
        return measured;
    }
    if measured.is_err() {
        eprintln!("an error ended the run; what was measured until then:");
    }
    let shown = show(&record.rows);
    measured.and(shown)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[derive(Serialize)]
    struct Row {
        speed: f64,
    }

    #[test]
    fn what_was_measured_before_an_error_is_written_and_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/measured.jsonl");
        let mut shown = 0;
        let run = |count: usize, shown: &mut usize| {
            recorded(
                &file,
                |record| {
                    for index in 0..count {
                        record.push(Row { speed: index as f64 })?;
                    }
                    bail!("the server ended")
                },
                |rows| {
                    *shown += rows.len();
                    bail!("not the first error")
                },
            )
        };
        assert_eq!(run(2, &mut shown).unwrap_err().to_string(), "the server ended");
        // Nothing to show, and rows of the run before stay.
        assert_eq!(run(0, &mut shown).unwrap_err().to_string(), "the server ended");
        assert_eq!(shown, 2);
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1]["run"].as_u64().unwrap() > 0 && lines[1]["speed"] == 1.0, "{text}");
    }

    #[test]
    fn a_run_without_an_error_shows_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut shown = 0;
        let show = |rows: &[u32]| {
            shown = rows.len();
            Ok(())
        };
        let measure = |record: &mut Record<u32>| record.push(3);
        recorded(&folder.path().join("measured.jsonl"), measure, show).unwrap();
        assert_eq!(shown, 1);
    }
}
