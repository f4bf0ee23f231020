//! The CPUs that programs run on.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};

/// The file that tells which CPUs this process may use.
const STATUS: &str = "/proc/self/status";

/// Returns `count` CPUs that this process may use as `taskset` takes them, on as many cores as there are.
pub(super) fn list(count: usize) -> Result<String> {
    let status = fs::read_to_string(STATUS).context(STATUS)?;
    let allowed = allowed(&status).with_context(|| format!("{STATUS}: found no Cpus_allowed_list"))?;
    let siblings = |cpu: usize| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).ok()
    };
    let chosen = chosen(&allowed, siblings, count)?;
    Ok(chosen.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
}

/// Reads the CPUs from the status of a process.
fn allowed(status: &str) -> Option<Vec<usize>> {
    numbers(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim())
}

/// Reads a list such as `0-2,8`.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

/// Chooses CPUs: one of each core, and further ones of a core only where cores do not suffice. Without a list of siblings, a CPU
/// is a core.
fn chosen(allowed: &[usize], siblings: impl Fn(usize) -> Option<String>, count: usize) -> Result<Vec<usize>> {
    ensure!(
        count <= allowed.len(),
        "found {} CPUs that this process may use, expected {count}\nhint: lower --threads",
        allowed.len()
    );
    let core = |cpu: usize| siblings(cpu).unwrap_or_else(|| cpu.to_string());
    let mut cores = BTreeSet::new();
    let (mut chosen, further): (Vec<usize>, Vec<usize>) =
        allowed.iter().copied().partition(|&cpu| cores.insert(core(cpu)));
    chosen.extend(further);
    chosen.truncate(count);
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_come_before_their_second_threads() {
        let status = "Name:\txtask\nCpus_allowed:\tf3\nCpus_allowed_list:\t0-1,4-7\nMems_allowed:\t1\n";
        let allowed = allowed(status).unwrap();
        assert_eq!(allowed, [0, 1, 4, 5, 6, 7]);
        // 0 and 4 are one core, as are 1 and 5; nothing is known of the others.
        let siblings = |cpu: usize| ["0,4\n", "1,5\n"].get(cpu % 4).map(|&text| text.to_owned());
        assert_eq!(chosen(&allowed, siblings, 4).unwrap(), [0, 1, 6, 7]);
        assert_eq!(chosen(&allowed, siblings, 5).unwrap(), [0, 1, 6, 7, 4]);
        assert_eq!(
            chosen(&allowed, siblings, 7).unwrap_err().to_string(),
            "found 6 CPUs that this process may use, expected 7\nhint: lower --threads"
        );
        assert_eq!((numbers(""), numbers("1-x")), (None, None));
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(list(1).unwrap().parse::<usize>().is_ok());
    }
}
