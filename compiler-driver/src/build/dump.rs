//! The folder that `--dump-dir` names.

use std::{fs, path::Path};

use crate::{build::unit::Job, error::Error};

/// A folder that receives the compiler's inputs and outputs.
pub(crate) struct DumpDir<'d>(&'d Path);

impl<'d> DumpDir<'d> {
    /// Creates the folder if it does not exist.
    pub(crate) fn create(folder: &'d Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io("write", folder))?;
        Ok(Self(folder))
    }

    /// Saves MLIR, objects, flags and vmfb of a job.
    pub(crate) fn save(&self, job: &Job<'_>, vmfb: &Path) -> Result<(), Error> {
        let Job { label, target, unit } = job;
        let name = label.replace(' ', "-");
        self.write(&format!("{name}.mlir"), unit.mlir.as_bytes())?;
        unit.objects.iter().try_for_each(|object| self.write(&object.name, &object.bytes))?;
        self.write(&format!("{name}.flags"), format!("{}\n", unit.flags_for(target).join("\n")).as_bytes())?;
        let to = self.0.join(format!("{name}.vmfb"));
        fs::copy(vmfb, &to).map_err(Error::io("write", &to))?;
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.0.join(name);
        fs::write(&path, bytes).map_err(Error::io("write", &path))
    }
}
