//! The file of answers: what it has already, and writing more.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::lines::Lines;

/// How every line of the file begins.
const START: &[u8] = b"{\"line\":";

/// Where answers go.
pub(super) struct Answers {
    out: Box<dyn Write>,
    name: String,
}

/// What an earlier run left in the file of answers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Earlier {
    /// For each line that has an answer, the digest of its request.
    digests: HashMap<u64, u64>,
    /// Lines of the file.
    lines: usize,
    /// True if the last line was cut off.
    is_cut_off: bool,
}

/// The fields of an answer that tell whether it still is one.
#[derive(Deserialize)]
struct Record {
    line: u64,
    #[serde(default)]
    request: Option<String>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl Record {
    /// Returns the digest of the request; `None` of an error.
    fn digest(&self) -> Option<u64> {
        let text = self.request.as_ref().filter(|_| self.error.is_none())?;
        u64::from_str_radix(text, 16).ok()
    }
}

impl Answers {
    /// Writes to standard output.
    pub(super) fn stdout() -> Self {
        Self { out: Box::new(io::stdout()), name: "standard output".to_owned() }
    }

    /// Writes to `out`.
    #[cfg(test)]
    pub(super) fn to(out: impl Write + 'static) -> Self {
        Self { out: Box::new(out), name: "out".to_owned() }
    }

    /// Writes an answer in one line, so that a reader sees it at once and a kill loses no other.
    pub(super) fn write(&mut self, answer: &Value) -> Result<()> {
        let line = format!("{answer}\n");
        self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush()).with_context(|| {
            format!(
                "cannot write an answer to {}\nhint: df -h shows whether its disk is full; the same command \
                 resumes what -o has begun",
                self.name
            )
        })
    }
}

/// A file of answers that is locked, so that no other run writes to it.
pub(super) struct AnswerFile {
    path: PathBuf,
    file: File,
    is_regular: bool,
}

impl AnswerFile {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = || {
            format!("cannot open {}\nhint: -o names the file that the answers are added to", path.display())
        };
        let file = OpenOptions::new().append(true).read(true).create(true).open(path).or_else(|error| {
            // A pipe or a terminal may not be readable.
            if path.is_file() { Err(error) } else { OpenOptions::new().append(true).open(path) }
        });
        let file = file.with_context(failed)?;
        let is_regular = file.metadata().with_context(failed)?.is_file();
        if is_regular && let Err(TryLockError::WouldBlock) = file.try_lock() {
            bail!(
                "another program writes to {}\nhint: wait for it, or choose another file for -o",
                path.display()
            );
        }
        let path = if is_regular { fs::canonicalize(path).with_context(failed)? } else { path.to_owned() };
        Ok(Self { path, file, is_regular })
    }

    /// Reads what an earlier run left.
    ///
    /// # Errors
    /// The file has a line that is no answer: it is something else, and stays as it is.
    pub(super) fn earlier(&self) -> Result<Earlier> {
        let mut found = Earlier::default();
        if !self.is_regular {
            return Ok(found);
        }
        self.each(|line, text| {
            if text.last() != Some(&b'\n') {
                found.is_cut_off = text.starts_with(START) || START.starts_with(text);
                return if found.is_cut_off { Ok(()) } else { Err(self.not_an_answer(line)) };
            }
            found.lines += 1;
            let record: Record = serde_json::from_slice(text).map_err(|_| self.not_an_answer(line))?;
            if let Some(digest) = record.digest() {
                found.digests.insert(record.line, digest);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Removes all but the answers to `done`, then writes after them.
    pub(super) fn resume(self, earlier: &Earlier, done: &HashSet<u64>) -> Result<Answers> {
        let name = self.path.display().to_string();
        if !earlier.is_cut_off && earlier.lines == done.len() {
            return Ok(Answers { out: Box::new(self.file), name });
        }
        let mut partial = self.path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let failed =
            || format!("cannot write {}\nhint: df -h shows whether its disk is full", partial.display());
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&partial);
        let file = file.with_context(failed)?;
        file.try_lock().with_context(failed)?;
        let mut out = BufWriter::new(file);
        let mut left = done.clone();
        self.each(|_, text| {
            let record = serde_json::from_slice::<Record>(text).ok().filter(|_| text.ends_with(b"\n"));
            let is_kept = record.is_some_and(|record| {
                let digest = record.digest();
                digest.is_some()
                    && earlier.digests.get(&record.line).copied() == digest
                    && left.remove(&record.line)
            });
            if is_kept { out.write_all(text).with_context(failed) } else { Ok(()) }
        })?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error).with_context(failed)?;
        file.sync_all().and_then(|()| fs::rename(&partial, &self.path)).with_context(failed)?;
        Ok(Answers { out: Box::new(file), name })
    }

    /// Passes every line with its number and its line break.
    fn each(&self, mut visit: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let reading = || format!("cannot read {}\nhint: choose another file for -o", self.path.display());
        let mut input = BufReader::new(File::open(&self.path).with_context(reading)?);
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            if input.read_until(b'\n', &mut text).with_context(reading)? == 0 {
                break;
            }
            visit(line, &text)?;
        }
        Ok(())
    }

    fn not_an_answer(&self, line: u64) -> anyhow::Error {
        anyhow::anyhow!(
            "line {line} of {} is no answer, expected none but those of an earlier run\n\
             hint: choose another file for -o",
            self.path.display()
        )
    }
}

impl Earlier {
    /// Returns true if there is nothing to resume.
    pub(super) fn is_empty(&self) -> bool {
        self.lines == 0 && !self.is_cut_off
    }

    /// Counts the requests of a file, and returns the numbers of those that have an answer to the same text.
    pub(super) fn survey(&self, requests: Lines) -> io::Result<(u64, HashSet<u64>)> {
        let (mut count, mut done) = (0, HashSet::new());
        for line in requests {
            let line = line?;
            count += 1;
            if self.digests.get(&line.number).is_some_and(|&digest| digest == line.digest()) {
                done.insert(line.number);
            }
        }
        Ok((count, done))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(text: &'static str) -> u64 {
        Lines::new(text.as_bytes()).next().unwrap().unwrap().digest()
    }

    /// Resumes `answers` to `requests`. Returns the file after one more answer, and the lines that are done.
    fn resumed(answers: &str, requests: &'static str) -> Result<(String, Vec<u64>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.jsonl");
        fs::write(&path, answers).unwrap();
        let file = AnswerFile::open(&path)?;
        let earlier = file.earlier()?;
        let (_, done) = earlier.survey(Lines::new(requests.as_bytes())).unwrap();
        file.resume(&earlier, &done)?.write(&json!({ "line": 9 }))?;
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["answers.jsonl"]);
        let mut done: Vec<u64> = done.into_iter().collect();
        done.sort_unstable();
        Ok((fs::read_to_string(&path).unwrap(), done))
    }

    #[test]
    fn answers_to_the_same_text_stay() {
        let [a, b] = ["a", "b"].map(|text| format!("{:016x}", digest(text)));
        let first = format!("{{\"line\":1,\"request\":\"{a}\",\"text\":\"x\"}}\n");
        let second = format!("{{\"line\":2,\"request\":\"{b}\"}}\n");
        let last = "{\"line\":9}\n";
        let check = |answers: &str, kept: &str, done: &[u64]| {
            let (found, lines) = resumed(answers, "a\nb\n").unwrap();
            assert_eq!(
                (found.as_str(), lines.as_slice()),
                (format!("{kept}{last}").as_str(), done),
                "{answers}"
            );
        };
        check("", "", &[]);
        check(&format!("{second}{first}"), &format!("{second}{first}"), &[1, 2]);
        // Errors, answers to other texts, repeated ones and a line that was cut off go.
        check(&format!("{{\"line\":2,\"error\":\"x\"}}\n{first}"), &first, &[1]);
        check(&format!("{first}{}", second.replace(&b, &a)), &first, &[1]);
        check(&format!("{first}{second}{first}"), &format!("{first}{second}"), &[1, 2]);
        for cut in 1..second.len() {
            check(&format!("{first}{}", &second[..cut]), &first, &[1]);
        }
        // An answer to a line that is no longer there.
        check(&format!("{first}{}", second.replace(":2", ":3")), &first, &[1]);
    }

    #[test]
    fn other_files_stay_as_they_are() {
        for (text, line) in [("precious\n", 1), ("precious", 1), ("{\"line\":1}\n{\"prompt\":\"a\"}\n", 2)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            fs::write(&path, text).unwrap();
            let error = AnswerFile::open(&path).unwrap().earlier().unwrap_err().to_string();
            let expected = format!("line {line} of {} is no answer, expected none but", path.display());
            assert!(error.starts_with(&expected), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn one_run_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let first = AnswerFile::open(&path).unwrap();
        let error = AnswerFile::open(&path).err().unwrap().to_string();
        assert!(error.starts_with("another program writes to "), "{error}");
        drop(first);
        AnswerFile::open(&path).unwrap();
    }

    #[test]
    fn a_disk_that_is_full_is_named() {
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let error = Answers::to(full).write(&json!({})).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot write an answer to out\nhint: df -h"), "{error:#}");
    }
}
