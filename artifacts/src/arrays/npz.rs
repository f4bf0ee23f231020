//! NumPy's npz files: a zip archive with an npy file for each array.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Write},
    path::Path,
};

use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

use super::{
    dtypes,
    error::Problem,
    npy::{self, Header},
    value::Tensor,
};

/// What a zip archive begins with; an empty one has the second.
pub(super) const MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// What names of members end with.
const EXTENSION: &str = ".npy";

/// The most arrays of a file.
const ARRAYS_MAX: usize = 1 << 16;

/// An array in an npz file.
#[derive(Debug)]
pub(super) struct Member {
    index: usize,
    pub(super) header: Header,
}

fn archive(file: File) -> Result<ZipArchive<BufReader<File>>, Problem> {
    ZipArchive::new(BufReader::new(file)).map_err(|error| zip_problem(&error))
}

fn zip_problem(error: &ZipError) -> Problem {
    match error {
        ZipError::UnsupportedArchive(_) => {
            let text = format!("found an archive that numpy does not write: {error}");
            Problem::unsupported(text, "write it with numpy's savez or savez_compressed")
        }
        error => Problem::damaged(format!("found a damaged zip archive: {error}")),
    }
}

/// Reads the names and headers of all arrays. No elements are inflated.
pub(super) fn members(file: File) -> Result<BTreeMap<String, Member>, Problem> {
    let mut archive = archive(file)?;
    if archive.has_duplicate_names() || archive.len() > ARRAYS_MAX {
        let count = archive.len();
        return Err(Problem::damaged(format!(
            "found {count} arrays, some with equal names or too many, expected each name once"
        )));
    }
    let mut members = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| zip_problem(&error))?;
        let key = member.name().map_err(|error| zip_problem(&error))?.into_owned();
        let key = key.strip_suffix(EXTENSION).unwrap_or(&key).to_owned();
        let (name, named) = dtypes::split_key(&key);
        let size = member.size();
        let header = Header::read(&mut member, named).map_err(|problem| problem.of(name))?;
        let expected = header.length as u64 + header.data_bytes() as u64;
        if size != expected {
            let text = format!("found {size} bytes, expected {expected} by its header");
            return Err(Problem::damaged(text).of(name));
        }
        if members.insert(name.to_owned(), Member { index, header }).is_some() {
            return Err(Problem::damaged("found it twice, expected it once").of(name));
        }
    }
    Ok(members)
}

/// Reads an array of which the header is known.
pub(super) fn read(file: File, member: &Member) -> Result<Tensor, Problem> {
    let mut archive = archive(file)?;
    let mut from = archive.by_index(member.index).map_err(|error| zip_problem(&error))?;
    let length = member.header.length as u64;
    io::copy(&mut io::Read::take(&mut from, length), &mut io::sink())
        .map_err(|error| Problem::read(&error))?;
    member.header.read_data(&mut from)
}

/// Writes tensors by name, not compressed, as numpy's savez does.
pub(super) fn write(tensors: &BTreeMap<String, Tensor>, to: &mut File, path: &Path) -> io::Result<()> {
    let mut archive = ZipWriter::new(to);
    for (name, tensor) in tensors {
        let suffix = dtypes::suffix(tensor.dtype()).map_or_else(String::new, |suffix| format!(":{suffix}"));
        // Archives with members over 4 GiB need another form of the directory.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(tensor.bytes().len() > u32::MAX as usize / 2);
        archive.start_file(format!("{name}{suffix}{EXTENSION}"), options).map_err(io::Error::other)?;
        npy::write(tensor, &mut archive)?;
        archive.flush()?;
    }
    archive.finish().map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    Ok(())
}
