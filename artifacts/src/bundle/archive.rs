//! A bundle as one file: a tar archive.
//!
//! The manifest comes first, then the signature if there is one, then the blobs ordered by digest. Entries have no owner
//! and no time, so equal bundles give equal archives. An import accepts only entries that the manifest lists, with the
//! sizes that it lists, and hashes them on their way to the disk.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Cursor, Read, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::{
    blob::{Blob, BlobRole},
    bundle::{
        Bundle,
        sign::LIMIT_BYTES as SIGNATURE_LIMIT,
        write::{Destination, add_verified},
    },
    digest::HashedReader,
    error::Error,
    files::{staging, sync_folder},
    layout::{BLOBS, MANIFEST, SIGNATURE},
    manifest::{MANIFEST_LIMIT, Manifest},
};

/// The first bytes of compressed files, the format, and the command that decompresses it.
const COMPRESSED: [(&[u8], &str, &str); 4] = [
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"\xfd7zX", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
];

/// The length of the longest of these.
const MAGIC_BYTES: u64 = 4;

/// The size of reads from blobs and of writes to the archive.
const BUFFER_BYTES: usize = 1 << 20;

/// The mode of entries.
const ENTRY_MODE: u32 = 0o644;

/// The mode of a new archive, before the process's umask.
const ARCHIVE_MODE: u32 = 0o666;

/// An entry's path and the entry.
type NamedEntry<'e, 'r> = (String, Entry<'e, &'r mut dyn Read>);

impl Bundle {
    /// Writes the bundle to an archive, and replaces a file that is there at once.
    ///
    /// Verifies every blob as it is read.
    ///
    /// # Errors
    /// A blob is missing or damaged, or the file cannot be written.
    pub fn export(&self, out: &Path) -> Result<(), Error> {
        if fs::symlink_metadata(out).is_ok_and(|found| !found.is_file()) {
            let problem = "it is not a regular file, expected one or nothing\n\
                           hint: name another file with --out, or write to stdout with `--out -`";
            return Err(Error::write(out)(io::Error::other(problem)));
        }
        let folder = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            let problem =
                format!("there is no such folder\nhint: create it with `mkdir -p {}`", folder.display());
            return Err(Error::write(out)(io::Error::other(problem)));
        }
        // What a process left that was killed is removed by the next one.
        let (staging, _lock) = staging(out)?;
        let staged = staging.path().join("archive");
        let file = File::options().write(true).create_new(true).mode(ARCHIVE_MODE).open(&staged);
        let file = file.map_err(Error::write(folder))?;
        let mut to = BufWriter::with_capacity(BUFFER_BYTES, &file);
        self.export_to(&mut to, out)?;
        to.flush().map_err(Error::write(out))?;
        drop(to);
        file.sync_all().and_then(|()| fs::rename(&staged, out)).map_err(Error::write(out))?;
        sync_folder(folder).map_err(Error::write(folder))
    }

    /// Writes the bundle as an archive to `to`, which errors call `name`.
    ///
    /// # Errors
    /// A blob is missing or damaged, or `to` fails.
    pub fn export_to(&self, to: &mut dyn Write, name: &Path) -> Result<(), Error> {
        let failed = || Error::write(name);
        let mut archive = Builder::new(to);
        let text = self.text().as_bytes();
        append(&mut archive, MANIFEST, text.len() as u64, &mut &*text).map_err(failed())?;
        if let Some(signature) = self.signature_text()? {
            let bytes = &mut signature.as_bytes();
            append(&mut archive, SIGNATURE, signature.len() as u64, bytes).map_err(failed())?;
        }
        for (name, (role, blob)) in self.manifest().distinct_blobs() {
            let path = self.blob_path(&blob);
            let file = File::open(&path).map_err(Error::read(&path))?;
            let mut hashed = HashedReader::new(BufReader::with_capacity(BUFFER_BYTES, file));
            // Opening the bundle compared the size. This cuts a file that has grown since.
            let mut bytes = (&mut hashed).take(blob.size);
            append(&mut archive, &format!("{BLOBS}/{name}"), blob.size, &mut bytes).map_err(failed())?;
            let found = hashed.digest();
            if found != blob.digest {
                return Err(Error::BlobDigest { role, found, expected: blob.digest });
            }
        }
        archive.into_inner().and_then(|to| to.flush()).map_err(failed())
    }

    /// Creates a bundle from an archive that [`export`](Self::export) wrote. Errors call `from` by `name`.
    ///
    /// The destination stays as it is until the whole archive is verified.
    ///
    /// # Errors
    /// The archive is not a bundle's or is incomplete, or the destination cannot be written.
    pub fn import(from: &mut dyn Read, name: &Path, mut to: Box<dyn Destination>) -> Result<Self, Error> {
        let bad = |problem: String| Error::Archive { path: name.to_path_buf(), problem };
        let start = read_start(from, name)?;
        let from: &mut dyn Read = &mut start.chain(from);
        let mut archive = Archive::new(from);
        let unreadable = |error: io::Error| bad(format!("it is not a complete tar archive: {error}"));
        // Raw, because extended headers would be read into memory whatever their size. A bundle's names need none.
        let mut entries = archive.entries().map_err(unreadable)?.raw(true);
        let mut next = || -> Result<Option<NamedEntry<'_, '_>>, Error> {
            let Some(entry) = entries.next() else { return Ok(None) };
            let entry = entry.map_err(unreadable)?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if entry.header().entry_type() != EntryType::Regular {
                let path = path.escape_debug();
                return Err(bad(format!("{path} is not a regular file, expected only regular files")));
            }
            Ok(Some((path, entry)))
        };
        let Some((first, entry)) = next()? else {
            return Err(bad(format!("it is empty, expected {MANIFEST} as its first entry")));
        };
        if first != MANIFEST {
            return Err(bad(format!("its first entry is {}, expected {MANIFEST}", first.escape_debug())));
        }
        let text = read_text(entry, MANIFEST, MANIFEST_LIMIT).map_err(bad)?;
        let manifest = Manifest::parse(&text)?;
        to.prepare(&manifest)?;
        let mut missing = manifest.distinct_blobs();
        let mut signature = None;
        while let Some((path, mut entry)) = next()? {
            if path == SIGNATURE && signature.is_none() {
                signature = Some(read_text(entry, SIGNATURE, SIGNATURE_LIMIT).map_err(bad)?);
                continue;
            }
            let digest = path.strip_prefix(BLOBS).and_then(|rest| rest.strip_prefix('/'));
            let Some((role, blob)) = digest.and_then(|digest| missing.remove(digest)) else {
                return Err(bad(unexpected(&path, &manifest)));
            };
            add_blob(&mut *to, role, &blob, &mut entry, name)?;
        }
        if let Some((role, blob)) = missing.into_values().next() {
            return Err(Error::MissingBlob { role, digest: blob.digest });
        }
        to.commit(&manifest, text, signature.as_deref())
    }
}

/// Appends an entry without owner and time.
fn append(archive: &mut Builder<impl Write>, name: &str, size: u64, bytes: &mut dyn Read) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_size(size);
    header.set_mode(ENTRY_MODE);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    archive.append_data(&mut header, name, bytes)
}

/// Reads the first bytes of an archive, and refuses compressed ones.
fn read_start(from: &mut dyn Read, name: &Path) -> Result<Cursor<Vec<u8>>, Error> {
    let mut start = Vec::new();
    from.take(MAGIC_BYTES).read_to_end(&mut start).map_err(Error::read(name))?;
    match COMPRESSED.iter().find(|(magic, ..)| start.starts_with(magic)) {
        Some((_, format, command)) => Err(Error::Archive {
            path: name.to_path_buf(),
            problem: format!(
                "it is compressed with {format}, expected an uncompressed archive\n\
                 hint: decompress it with `{command}`"
            ),
        }),
        None => Ok(Cursor::new(start)),
    }
}

/// Reads an entry of at most `limit` bytes of text.
fn read_text(mut entry: Entry<'_, impl Read>, name: &str, limit: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = (&mut entry).take(limit + 1).read_to_string(&mut text);
    match read.map_err(|error| format!("{name}: {error}"))? as u64 {
        read if read > limit => Err(format!("{name} has more than {limit} bytes")),
        read if read < entry.size() => Err(format!("it ends within {name}")),
        _ => Ok(text),
    }
}

/// Adds an entry's bytes, which must be those of `blob`, to a bundle.
fn add_blob(
    to: &mut dyn Destination,
    role: BlobRole,
    blob: &Blob,
    entry: &mut Entry<'_, impl Read>,
    archive: &Path,
) -> Result<(), Error> {
    let found = entry.size();
    if found != blob.size {
        return Err(Error::BlobSize { role, found, expected: blob.size, digest: blob.digest });
    }
    let ends_early =
        Error::Archive { path: archive.to_path_buf(), problem: format!("it ends within {role}") };
    match add_verified(to, role, blob, entry, archive) {
        Err(Error::BlobSize { .. }) => Err(ends_early),
        other => other,
    }
}

/// Describes an entry that is not in the manifest, or not any more.
fn unexpected(path: &str, manifest: &Manifest) -> String {
    let is_listed = manifest.blobs().any(|(_, blob)| format!("{BLOBS}/{}", blob.digest.hex()) == path);
    let shown = path.escape_debug();
    if is_listed || [MANIFEST, SIGNATURE].contains(&path) {
        format!("it has {shown} twice, expected it once")
    } else {
        format!("it has {shown}, expected only files that {MANIFEST} lists")
    }
}
