//! How the input of a target is two files.

/// The first file's length is in the first four bytes, little-endian; the second one is the rest.
#[must_use]
pub fn two_files(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, files)) = bytes.split_first_chunk() else { return (bytes, &[]) };
    let length = u32::from_le_bytes(*length) as usize;
    files.split_at(length.min(files.len()))
}
