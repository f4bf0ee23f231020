//! Splits the input of a fuzz target into two files.

/// Returns both files. The first four bytes are the length of the first file, little-endian.
#[must_use]
pub fn two_files(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, files)) = bytes.split_first_chunk() else { return (bytes, &[]) };
    let length = u32::from_le_bytes(*length) as usize;
    files.split_at(length.min(files.len()))
}
