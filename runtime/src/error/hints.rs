//! Texts of hints.

use std::{io, path::Path};

use mlxcel_artifacts::Driver;

/// Returns the remedy for a file or folder that cannot be read.
pub(super) fn read_hint(path: &Path, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::PermissionDenied => format!("ls -ld {} shows who may read it", path.display()),
        io::ErrorKind::NotFound => format!("ls {} shows what is there", folder_of(path).display()),
        _ => format!("check the disk, or copy {} again", path.display()),
    }
}

/// Returns the folder that a file lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the first of many lines, and how many more there are.
pub(super) fn first_lines(lines: &[String]) -> String {
    const MOST: usize = 8;
    let mut text: String = lines.iter().take(MOST).map(|line| format!("\n  {line}")).collect();
    if let Some(more) = lines.len().checked_sub(MOST).filter(|more| *more > 0) {
        text += &format!("\n  and {more} more");
    }
    text
}

/// Returns the target that runs on every device of a driver.
pub(super) fn portable_target(driver: Driver) -> &'static str {
    match driver {
        Driver::Local => "cpu",
        Driver::Cuda => "cuda",
        Driver::Vulkan => "vulkan",
        Driver::Hip => "rocm-gfx942",
        Driver::Metal => "metal",
    }
}
