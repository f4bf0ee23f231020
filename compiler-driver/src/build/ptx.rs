//! Requirements of a vmfb for NVIDIA GPUs, read from the PTX in it: its `.version` and `.target` directives.

use std::{fs, path::Path, str};

use mlxcel_artifacts::{GpuNeeds, Version};

use crate::error::Error;

/// Returns the newest versions that the PTX in a vmfb requires, or `None` if there is no PTX in it.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn needs(vmfb: &Path) -> Result<Option<GpuNeeds>, Error> {
    Ok(parse(&fs::read(vmfb).map_err(Error::io("read", vmfb))?))
}

fn parse(bytes: &[u8]) -> Option<GpuNeeds> {
    let version = |text: &str| text.parse().ok();
    // `80`, `121`, or `90a` for code that runs on this generation only.
    let target = |text: &str| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
        Some(Version(major.parse().ok()?, minor.parse().ok()?))
    };
    let ptx = values(bytes, b".version ").filter_map(version).max()?;
    let compute_capability = values(bytes, b".target sm_").filter_map(target).max()?;
    Some(GpuNeeds { compute_capability, ptx })
}

/// Returns the word after each `directive`.
fn values<'b>(bytes: &'b [u8], directive: &'static [u8]) -> impl Iterator<Item = &'b str> {
    let starts = bytes.windows(directive.len()).enumerate().filter(move |(_, window)| *window == directive);
    starts.filter_map(move |(start, _)| {
        let rest = &bytes[start + directive.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')?;
        str::from_utf8(&rest[..end]).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requirement_of_all_modules_counts() {
        let found = |text: &str| parse(text.as_bytes()).map(|needs| (needs.compute_capability, needs.ptx));
        let one = "\0FlatBuffer\0//\n.version 7.6\n.target sm_80\n.address_size 64\n";
        assert_eq!(found(one), Some((Version(8, 0), Version(7, 6))));
        let two = format!("{one}.version 8.8\n.target sm_121a\n");
        assert_eq!(found(&two), Some((Version(12, 1), Version(8, 8))));
        for text in [
            "",
            ".version 7.6\n",
            ".version x\n.target sm_80\n",
            ".version 7.6\n.target sm_\n",
            ".version 7.6",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
