//! Writes the compiled kernels to a folder, for `cargo xtask goldens` or an iree-compile that is run by hand.

use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("found no argument, expected a folder to write"))?;
    fs::create_dir_all(&folder)?;
    mlxcel_emitter::objects().try_for_each(|object| fs::write(folder.join(&*object.name), object.bytes))
}
