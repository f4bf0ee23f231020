//! A bundle as one file: a tar archive that is the same for the same bundle.
//!
//! The manifest comes first, then its signature if it has one, then the blobs by name. Entries have no owner, no time and one
//! mode. Reading takes nothing else: every entry is one that the manifest names, of the size that it says, and is hashed on
//! its way to the disk.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::{
    bundle::{
        Bundle,
        sign::LIMIT_BYTES as SIGNATURE_LIMIT,
        write::{Destination, add_whole},
    },
    digest::HashedReader,
    error::Error,
    files::sync_folder,
    layout::{BLOBS, MANIFEST, SIGNATURE},
    manifest::{MANIFEST_LIMIT, Manifest},
};

/// What begins what people make of archives, and the program that undoes it.
const COMPRESSED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zX", "xz"), (b"BZh", "bzip2")];

/// The longest of these beginnings.
const MAGIC_BYTES: u64 = 4;

/// An entry with its name.
type Named<'e, 'r> = (String, Entry<'e, &'r mut dyn Read>);

impl Bundle {
    /// Writes the bundle to a file, which is replaced at once if it was there. Every blob is verified as it is read.
    ///
    /// # Errors
    /// When a blob is missing or damaged, or the file cannot be written.
    pub fn export(&self, out: &Path) -> Result<(), Error> {
        if fs::symlink_metadata(out).is_ok_and(|found| !found.is_file()) {
            let found = "it is no regular file, expected one or nothing; --out - is standard output";
            return Err(Error::write(out)(io::Error::other(found)));
        }
        let folder = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The mode is that of an ordinary new file.
        let mode = fs::Permissions::from_mode(0o666);
        let temporary =
            tempfile::Builder::new().prefix(".mlxcel-export-").permissions(mode).tempfile_in(folder);
        let temporary = temporary.map_err(Error::write(folder))?;
        let mut to = BufWriter::with_capacity(1 << 20, temporary.as_file());
        self.export_to(&mut to, out)?;
        to.flush().map_err(Error::write(out))?;
        drop(to);
        temporary.as_file().sync_all().map_err(Error::write(out))?;
        temporary.persist(out).map_err(|error| Error::write(out)(error.error))?;
        sync_folder(folder).map_err(Error::write(folder))
    }

    /// The same to any writer, which errors call `name`.
    ///
    /// # Errors
    /// As [`export`](Self::export).
    pub fn export_to(&self, to: &mut dyn Write, name: &Path) -> Result<(), Error> {
        let failed = || Error::write(name);
        let mut archive = Builder::new(to);
        let mut add = |name: &str, size: u64, bytes: &mut dyn Read| {
            let mut header = Header::new_ustar();
            header.set_size(size);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            archive.append_data(&mut header, name, bytes)
        };
        let text = self.text().as_bytes();
        add(MANIFEST, text.len() as u64, &mut &*text).map_err(failed())?;
        if let Some(signature) = self.signature_text()? {
            add(SIGNATURE, signature.len() as u64, &mut signature.as_bytes()).map_err(failed())?;
        }
        // By digest, each once.
        for (name, (what, blob)) in self.manifest().distinct_blobs() {
            let path = self.blob_path(&blob);
            let file = File::open(&path).map_err(Error::read(&path))?;
            let mut hashed = HashedReader::new(BufReader::with_capacity(1 << 20, file));
            // The size was checked when the bundle was opened; a file that has grown since is cut here.
            let mut bytes = (&mut hashed).take(blob.size);
            add(&format!("{BLOBS}/{name}"), blob.size, &mut bytes).map_err(failed())?;
            let found = hashed.digest();
            if found != blob.digest {
                return Err(Error::BlobDigest { what, found, expected: blob.digest });
            }
        }
        archive.into_inner().and_then(|to| to.flush()).map_err(failed())
    }

    /// Makes a bundle of what [`export`](Self::export) wrote, read from `from`, which errors call `name`. Its place is as it
    /// was until all of it was found whole.
    ///
    /// # Errors
    /// When it is no such archive, or not of a whole bundle, or the place cannot be written.
    pub fn import(from: &mut dyn Read, name: &Path, mut to: Box<dyn Destination>) -> Result<Self, Error> {
        let bad = |problem: String| Error::Archive { path: name.to_path_buf(), problem };
        let unreadable = |error: io::Error| bad(error.to_string());
        let mut start = Vec::new();
        (&mut *from).take(MAGIC_BYTES).read_to_end(&mut start).map_err(Error::read(name))?;
        if let Some((_, by)) = COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
            return Err(bad(format!("it is compressed by {by}, expected it as export wrote it")));
        }
        let from: &mut dyn Read = &mut start.chain(from);
        let mut archive = Archive::new(from);
        // Raw: what extends an entry's header would be read to memory, however long it is. Our names need none.
        let mut entries = archive.entries().map_err(unreadable)?.raw(true);
        let mut next = || -> Result<Option<Named<'_, '_>>, Error> {
            let Some(entry) = entries.next() else { return Ok(None) };
            let entry = entry.map_err(unreadable)?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if entry.header().entry_type() != EntryType::Regular {
                return Err(bad(format!("{} is no regular file", path.escape_debug())));
            }
            Ok(Some((path, entry)))
        };
        let Some((first, entry)) = next()? else { return Err(bad("it is empty".into())) };
        if first != MANIFEST {
            return Err(bad(format!("it begins with {}, expected {MANIFEST}", first.escape_debug())));
        }
        let text = text(entry, MANIFEST_LIMIT).map_err(|problem| bad(format!("{MANIFEST}: {problem}")))?;
        let manifest = Manifest::parse(&text)?;
        to.begin(&manifest)?;
        let mut missing = manifest.distinct_blobs();
        let mut signature = None;
        while let Some((path, mut entry)) = next()? {
            if path == SIGNATURE && signature.is_none() {
                let read = self::text(entry, SIGNATURE_LIMIT);
                signature = Some(read.map_err(|problem| bad(format!("{SIGNATURE}: {problem}")))?);
                continue;
            }
            let wanted = path.strip_prefix(BLOBS).and_then(|rest| rest.strip_prefix('/'));
            let Some((what, blob)) = wanted.and_then(|name| missing.remove(name)) else {
                let again = if path == SIGNATURE {
                    "a second time"
                } else {
                    "which the manifest does not name, or a second time"
                };
                return Err(bad(format!("it has {}, {again}", path.escape_debug())));
            };
            let found = entry.size();
            if found != blob.size {
                return Err(Error::BlobSize { what, found, expected: blob.size, digest: blob.digest });
            }
            let cut = bad(format!("it ends within {what}"));
            match add_whole(&mut *to, what, &blob, &mut entry, name) {
                Err(Error::BlobSize { .. }) => return Err(cut),
                other => other?,
            }
        }
        if let Some((what, blob)) = missing.into_values().next() {
            return Err(Error::MissingBlob { what, digest: blob.digest });
        }
        to.finish_as(&manifest, text, signature.as_deref())
    }
}

/// The text of an entry of at most `limit` bytes.
fn text(mut entry: Entry<'_, impl Read>, limit: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = (&mut entry).take(limit + 1).read_to_string(&mut text);
    match read.map_err(|error| error.to_string())? as u64 {
        read if read > limit => Err(format!("found more than {limit} bytes")),
        read if read < entry.size() => Err("the archive ends within it".into()),
        _ => Ok(text),
    }
}
