//! What a vmfb for NVIDIA GPUs needs: its PTX, which lies in it as text, begins with `.version` and `.target`.

use std::{fs, path::Path, str};

use mlxcel_artifacts::{GpuNeeds, Version};

use crate::Error;

/// The newest of what the PTX of a vmfb asks for; `None` where there is no PTX in it.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn needs(vmfb: &Path) -> Result<Option<GpuNeeds>, Error> {
    Ok(of_bytes(&fs::read(vmfb).map_err(Error::io("read", vmfb))?))
}

fn of_bytes(bytes: &[u8]) -> Option<GpuNeeds> {
    let version = |text: &str| text.parse().ok();
    // sm_80, sm_121, and sm_90a for what one GPU alone has.
    let target = |text: &str| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
        Some(Version(major.parse().ok()?, minor.parse().ok()?))
    };
    let ptx = values(bytes, b".version ").filter_map(version).max()?;
    let compute_capability = values(bytes, b".target sm_").filter_map(target).max()?;
    Some(GpuNeeds { compute_capability, ptx })
}

/// The words that follow every `directive`.
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
    fn the_newest_of_all_modules() {
        let found = |text: &str| of_bytes(text.as_bytes()).map(|needs| (needs.compute_capability, needs.ptx));
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
