//! Archives whose bytes follow from names and contents.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::build::Build;
use crate::shell;

/// Packs a folder of [`Build::trees`] into `NAME-VERSION-ARCH-linux.tar.gz`, with a folder of that name in it.
pub(super) fn write(build: &Build<'_>, folder: &Path, out: &Path) -> Result<()> {
    let name = folder.file_name().context("a folder has a name")?.to_string_lossy();
    let full = format!("{name}-{}-{}-linux", build.version(), build.arch());
    eprintln!("packing {full}.tar.gz");
    pack(folder, &full, &build.epoch, &out.join(format!("{full}.tar.gz")))
}

/// Packs a folder under the name `full`. Every file gets the time `epoch`.
fn pack(folder: &Path, full: &str, epoch: &str, archive: &Path) -> Result<()> {
    let (parent, name) = (folder.parent(), folder.file_name());
    let (parent, name) = parent.zip(name).context("a folder has a name")?;
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    // The permissions of files must not depend on the umask.
    tar.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{epoch}")]);
    tar.arg(format!("--transform=s,^{},{full},", name.to_string_lossy())).arg("-C").arg(parent).arg(name);
    let mut packing = tar.stdout(Stdio::piped()).spawn().context("cannot start tar")?;
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name"]).stdin(packing.stdout.take().context("tar has a stdout")?);
    let file = File::create(archive).with_context(|| archive.display().to_string())?;
    shell::run(gzip.stdout(file))?;
    let status = packing.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", shell::command_line(&tar));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn equal_folders_give_equal_archives() {
        let folder = tempfile::tempdir().unwrap();
        let archives = ["first", "another/second"].map(|parent| {
            let tree = folder.path().join(parent).join("mlxcel");
            let names = if parent == "first" { ["bin/b", "a"] } else { ["a", "bin/b"] };
            for name in names {
                let file = tree.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, name).unwrap();
                let mode = if parent == "first" { 0o600 } else { 0o664 };
                fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            }
            let archive = tree.with_extension("tar.gz");
            pack(&tree, "mlxcel-1", "1700000000", &archive).unwrap();
            fs::read(archive).unwrap()
        });
        assert!(archives[0] == archives[1]);
        let archive = folder.path().join("first/mlxcel.tar.gz");
        let list = shell::output(Command::new("tar").arg("-tzf").arg(archive)).unwrap();
        assert_eq!(list, "mlxcel-1/\nmlxcel-1/a\nmlxcel-1/bin/\nmlxcel-1/bin/b\n");
    }
}
