//! Memory of this machine.

/// Returns the bytes of memory that this process can still get, where the system says.
#[cfg(feature = "iree")]
#[must_use]
pub fn free_memory() -> Option<u64> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    // It is 0 without /proc, and then groups cannot be asked either.
    let available = Some(system.available_memory()).filter(|&bytes| bytes > 0)?;
    // What a group has of files in memory, such as weights, makes room for others.
    let group = system.cgroup_limits().map(|limits| limits.total_memory.saturating_sub(limits.rss));
    Some(group.map_or(available, |group| group.min(available)))
}

/// Returns nothing, because no bundle runs without IREE.
#[cfg(not(feature = "iree"))]
#[must_use]
pub fn free_memory() -> Option<u64> {
    None
}

#[cfg(all(test, feature = "iree", target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_free_memory_is_known_here() {
        assert!(free_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
