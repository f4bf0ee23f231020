//! What is emulated, as the environment says.

use std::{env, ffi::c_int, str::FromStr, sync::LazyLock};

/// The variable with the number of devices.
const DEVICES: &str = "MLXCEL_EMULATED_DEVICES";
/// The variable with the memory of each device.
const MEMORY: &str = "MLXCEL_EMULATED_MEMORY";
/// The variable with what other programs leave of it.
const FREE: &str = "MLXCEL_EMULATED_FREE";
/// The variable with the compute capability of each device.
const CAPABILITY: &str = "MLXCEL_EMULATED_CAPABILITY";
/// The variable with the version of CUDA that the driver supports.
const DRIVER: &str = "MLXCEL_EMULATED_DRIVER";
/// The variables with the launch that ends a context.
const LOST: &str = "MLXCEL_EMULATED_LOST";
const RESET: &str = "MLXCEL_EMULATED_RESET";

/// Bytes of memory by default.
const MEMORY_BYTES: u64 = 16 << 30;
/// CUDA 12.8.
const VERSION: c_int = 12080;

/// What is emulated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) devices: usize,
    memory: Vec<Bytes>,
    free: Vec<Bytes>,
    capabilities: Vec<Capability>,
    /// As `cuDriverGetVersion` has it: 12080 is CUDA 12.8.
    pub(super) driver: c_int,
    /// The launch with which a GPU is lost, and the one before which its context is reset.
    pub(super) lost: Option<AtLaunch>,
    pub(super) reset: Option<AtLaunch>,
}

/// The settings of this process.
pub(super) static SETTINGS: LazyLock<Settings> = LazyLock::new(|| Settings::new(|name| env::var(name).ok()));

impl Settings {
    /// Reads variables. One that has no meaning is as good as absent, and stderr says so.
    fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let known = Known(variable);
        Self {
            devices: known.one(DEVICES).unwrap_or(1),
            memory: known.list(MEMORY),
            free: known.list(FREE),
            capabilities: known.list(CAPABILITY),
            driver: known.one(DRIVER).unwrap_or(VERSION),
            lost: known.one(LOST),
            reset: known.one(RESET),
        }
    }

    /// Returns the bytes of a device's memory.
    pub(super) fn memory(&self, device: usize) -> u64 {
        of(&self.memory, device).map_or(MEMORY_BYTES, |bytes| bytes.0)
    }

    /// Returns the bytes of a device's memory that other programs do not have.
    pub(super) fn free(&self, device: usize) -> u64 {
        let all = self.memory(device);
        of(&self.free, device).map_or(all, |bytes| bytes.0.min(all))
    }

    /// Returns the compute capability of a device.
    pub(super) fn capability(&self, device: usize) -> (u32, u32) {
        of(&self.capabilities, device).map_or((9, 0), |found| (found.0, found.1))
    }

    /// Returns the newest version of PTX that the driver knows: PTX ISA, "release notes".
    pub(super) fn newest_ptx(&self) -> (u32, u32) {
        let (major, minor) = (self.driver / 1000, self.driver % 1000 / 10);
        let minor = match (major, minor) {
            // CUDA 12.6 has the PTX of 12.5.
            (12, 6..) => minor - 1,
            _ => minor,
        };
        (u32::try_from(major - 4).unwrap_or(0), u32::try_from(minor).unwrap_or(0))
    }
}

/// Returns what a list says of a device: the last entry is that of all further ones.
fn of<T>(list: &[T], device: usize) -> Option<&T> {
    list.get(device).or(list.last())
}

/// The variables that are known.
struct Known<V>(V);

impl<V: Fn(&str) -> Option<String>> Known<V> {
    fn one<T: FromStr>(&self, name: &str) -> Option<T> {
        let text = self.0(name)?;
        let value = text.parse().ok();
        if value.is_none() {
            eprintln!("cuda emulator: {name}: found {text}, expected what README.md says");
        }
        value
    }

    /// Returns the values of a list with commas.
    fn list<T: FromStr>(&self, name: &str) -> Vec<T> {
        self.one::<List<T>>(name).map_or_else(Vec::new, |list| list.0)
    }
}

struct List<T>(Vec<T>);

impl<T: FromStr> FromStr for List<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// A size: `4096`, `64KiB`, `1MiB` or `16GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes(u64);

impl FromStr for Bytes {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
        let found = units.iter().find_map(|(name, shift)| Some((text.strip_suffix(name)?, *shift)));
        let (digits, shift) = found.unwrap_or((text, 0));
        let number: u64 = digits.parse().map_err(|_| ())?;
        number.checked_mul(1 << shift).map(Self).ok_or(())
    }
}

/// A compute capability: `7.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Capability(u32, u32);

impl FromStr for Capability {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number = |digits: &str| digits.parse().map_err(|_| ());
        Ok(Self(number(major)?, number(minor)?))
    }
}

/// A launch of a device, counted from 1: `0:20`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AtLaunch {
    pub(super) device: usize,
    pub(super) launch: u64,
}

impl FromStr for AtLaunch {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (device, launch) = text.split_once(':').ok_or(())?;
        Ok(Self { device: device.parse().map_err(|_| ())?, launch: launch.parse().map_err(|_| ())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::new(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn one_device_is_the_default() {
        let found = settings(&[]);
        assert_eq!((found.devices, found.memory(0), found.free(3)), (1, 16 << 30, 16 << 30));
        assert_eq!((found.capability(0), found.newest_ptx()), ((9, 0), (8, 7)));
        assert_eq!(settings(&[(MEMORY, "1 MiB"), (LOST, "20")]), found);
    }

    #[test]
    fn the_last_of_a_list_is_that_of_the_rest() {
        let found = settings(&[(MEMORY, "1MiB,2GiB"), (FREE, "4096,3GiB"), (CAPABILITY, "7.5,8.0")]);
        assert_eq!([0, 1, 2].map(|device| found.memory(device)), [1 << 20, 2 << 30, 2 << 30]);
        assert_eq!([0, 1].map(|device| found.free(device)), [4096, 2 << 30]);
        assert_eq!([0, 1].map(|device| found.capability(device)), [(7, 5), (8, 0)]);
    }

    #[test]
    fn a_driver_knows_the_ptx_of_its_time() {
        let ptx = |version| settings(&[(DRIVER, version)]).newest_ptx();
        let versions = ["11040", "11080", "12000", "12050", "12060", "12080", "13000"];
        assert_eq!(versions.map(ptx), [(7, 4), (7, 8), (8, 0), (8, 5), (8, 5), (8, 7), (9, 0)]);
    }

    #[test]
    fn faults_name_a_device_and_a_launch() {
        assert_eq!(settings(&[(RESET, "1:20")]).reset, Some(AtLaunch { device: 1, launch: 20 }));
    }
}
