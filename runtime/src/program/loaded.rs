//! A program on a device.

use mlxcel_artifacts::entry::Entry;

use super::{
    bundle::{DeviceOptions, Program, cpu_for},
    function::Function,
    names::find_function,
};
use crate::{
    device::DeviceInfo,
    error::Error,
    ffi::{Device, Module},
    iree::{loaded::OpenedModule, select::DeviceChoice},
};

/// A program on a device, with its parameters. Its functions share them.
#[derive(Debug)]
pub struct LoadedProgram {
    program: Program,
    module: Module,
    device: Device,
    info: DeviceInfo,
}

impl Program {
    /// Loads the program on a device of this machine.
    ///
    /// A module for the CPU is native code, and loading it runs it. Load only bundles that you would run as a program.
    ///
    /// # Errors
    /// The bundle has no target for the device or this machine, the device cannot be used, or the bundle's files are damaged.
    pub fn load(&self, options: DeviceOptions) -> Result<LoadedProgram, Error> {
        let cpu = cpu_for(self.functions(), &options);
        let DeviceOptions { device, threads, trace } = options;
        let choice = DeviceChoice { asked: device, threads, cpu, trace };
        let OpenedModule { module, device, info, .. } = OpenedModule::new(self.bundle(), None, &choice)?;
        Ok(LoadedProgram { program: self.clone(), module, device, info })
    }
}

impl LoadedProgram {
    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.info
    }

    /// Returns the bytes of the device's memory that were allocated so far, those that were freed again included.
    ///
    /// Calls that take and return state alone allocate none.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        self.device.allocated()
    }

    /// Returns the program's functions.
    #[must_use]
    pub fn functions(&self) -> &[Entry] {
        self.program.functions()
    }

    /// Prepares calls of a function. Its arguments are given before the first call.
    ///
    /// # Errors
    /// The program has no such function.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let entry = find_function(self.program.bundle().manifest(), Some(name))?;
        Function::new(&self.module, entry)
    }
}
