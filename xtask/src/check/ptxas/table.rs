//! The committed table of what kernels take.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result, bail};

use super::usage::Usage;
use crate::shell;

/// Usages by compute capability.
pub(super) type Usages = BTreeMap<u32, Usage>;

/// What is known of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// The beginning of the digest of its PTX.
    pub(super) digest: String,
    pub(super) usages: Usages,
}

/// Rows by kernel.
pub(super) type Table = BTreeMap<String, Row>;

/// The names of columns before those of capabilities.
const KERNEL: &str = "kernel";
const DIGEST: &str = "ptx";
/// The cell of a capability that the kernel is not for.
const NONE: &str = "-";

/// Returns the text of a table. `version` is that of ptxas.
pub(super) fn write(table: &Table, capabilities: &[u32], version: &str) -> String {
    let names = capabilities.iter().map(|capability| format!("sm_{capability}"));
    let mut rows = vec![[KERNEL, DIGEST].map(str::to_owned).into_iter().chain(names).collect::<Vec<_>>()];
    for (kernel, Row { digest, usages }) in table {
        let cell = |capability| usages.get(capability).map_or(NONE.to_owned(), Usage::to_string);
        let cells = capabilities.iter().map(cell);
        rows.push([kernel.clone(), digest.clone()].into_iter().chain(cells).collect());
    }
    format!(
        "// Written by `cargo xtask ptxas --bless` with ptxas {version}: the digest of a kernel's PTX, and registers of a thread\n\
         // on each compute capability; after slashes, bytes of shared memory of a block, of a thread's stack, of its stores that\n\
         // spill and of its loads.\n{}",
        shell::table(&rows)
    )
}

/// Adds what is known of kernels whose PTX is the same.
pub(super) fn completed(mut table: Table, known: &Table) -> Table {
    for (kernel, row) in &mut table {
        if let Some(known) = known.get(kernel).filter(|known| known.digest == row.digest) {
            for (capability, usage) in &known.usages {
                row.usages.entry(*capability).or_insert(*usage);
            }
        }
    }
    table
}

/// Reads what [`write()`] writes.
pub(super) fn read(text: &str) -> Result<Table> {
    let mut lines = text.lines().filter(|line| !line.starts_with("//"));
    let header: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    let number = |name: &&str| name.strip_prefix("sm_")?.parse().ok();
    let capabilities = match header.as_slice() {
        [KERNEL, DIGEST, names @ ..] => names.iter().map(number).collect::<Option<Vec<u32>>>(),
        _ => None,
    };
    let Some(capabilities) = capabilities else {
        bail!("found the columns {}, expected {KERNEL} {DIGEST} sm_80 …", header.join(" "));
    };
    let mut table = Table::new();
    for line in lines {
        let cells: Vec<_> = line.split_whitespace().collect();
        let [kernel, digest, cells @ ..] = cells.as_slice() else {
            bail!("found the line `{line}`, expected cells");
        };
        if cells.len() != capabilities.len() {
            bail!("found {} capabilities in `{line}`, expected {}", cells.len(), capabilities.len());
        }
        let mut usages = Usages::new();
        for (&capability, &cell) in capabilities.iter().zip(cells).filter(|(_, cell)| **cell != NONE) {
            let usage = Usage::read(cell).with_context(|| format!("found the cell {cell} in `{line}`"))?;
            usages.insert(capability, usage);
        }
        table.insert((*kernel).to_owned(), Row { digest: (*digest).to_owned(), usages });
    }
    Ok(table)
}

/// Returns a line for each usage that is not as expected, for each kernel that was assembled and is not expected, and the reverse.
/// `found` has all kernels, with the capabilities that they were assembled for.
pub(super) fn differences(found: &Table, expected: &Table) -> Vec<String> {
    let none = Usages::new();
    let of =
        |table: &'_ Table, kernel: &str| table.get(kernel).map_or(none.clone(), |row| row.usages.clone());
    let mut lines = Vec::new();
    for (kernel, Row { usages, .. }) in found {
        let known = of(expected, kernel);
        for (capability, usage) in usages {
            let known = known.get(capability).copied();
            if known != Some(*usage) {
                let [found, expected] = [Some(*usage), known].map(words);
                lines.push(format!("{kernel} on sm_{capability}: found {found}, expected {expected}"));
            }
        }
    }
    let gone = expected.keys().filter(|kernel| !found.contains_key(*kernel));
    lines.extend(gone.map(|kernel| format!("{kernel}: found no kernel, expected one")));
    lines
}

/// Says what a kernel takes.
pub(super) fn words(usage: Option<Usage>) -> String {
    let Some(Usage { registers, shared, stack, spill_stores, spill_loads }) = usage else {
        return "no kernel".to_owned();
    };
    let mut text = format!("{registers} registers");
    for (bytes, of) in [
        (shared, "bytes of shared memory"),
        (stack, "bytes of stack"),
        (spill_stores, "bytes of stores that spill"),
        (spill_loads, "bytes of loads that spill"),
    ] {
        if bytes > 0 {
            let _ = write!(text, " and {bytes} {of}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &[(u32, &str)])]) -> Table {
        let cells = |cells: &[(u32, &str)]| -> Usages {
            cells.iter().map(|&(capability, cell)| (capability, Usage::read(cell).unwrap())).collect()
        };
        let row = |of| Row { digest: "0123abcd".to_owned(), usages: cells(of) };
        rows.iter().map(|&(kernel, of)| (kernel.to_owned(), row(of))).collect()
    }

    #[test]
    fn what_is_not_assembled_again_stays_if_its_ptx_is_the_same() {
        let of = |digest: &str, capability, registers: &str| {
            let usages = [(capability, Usage::read(registers).unwrap())].into();
            Table::from([("a".to_owned(), Row { digest: digest.into(), usages })])
        };
        let cells = |table: Table| -> Vec<String> {
            table["a"].usages.iter().map(|(capability, usage)| format!("{capability}: {usage}")).collect()
        };
        assert_eq!(cells(completed(of("0", 80, "32"), &of("0", 90, "40"))), ["80: 32", "90: 40"]);
        assert_eq!(cells(completed(of("0", 80, "32"), &of("0", 80, "40"))), ["80: 32"]);
        assert_eq!(cells(completed(of("1", 80, "32"), &of("0", 90, "40"))), ["80: 32"]);
    }

    #[test]
    fn a_table_is_read_as_it_is_written() {
        let known = rows(&[
            ("cuda_copy_f32-sm_80", &[(80, "12"), (90, "14/1024")]),
            ("cuda_x-sm_90", &[(90, "255/0/8/4/4")]),
        ]);
        let text = write(&known, &[80, 90], "12.9.86");
        insta::assert_snapshot!(text, @r"
        // Written by `cargo xtask ptxas --bless` with ptxas 12.9.86: the digest of a kernel's PTX, and registers of a thread
        // on each compute capability; after slashes, bytes of shared memory of a block, of a thread's stack, of its stores that
        // spill and of its loads.
        kernel               ptx       sm_80  sm_90
        cuda_copy_f32-sm_80  0123abcd  12     14/1024
        cuda_x-sm_90         0123abcd  -      255/0/8/4/4
        ");
        assert_eq!(read(&text).unwrap(), known);
        for (broken, error) in [
            ("", "found the columns , expected kernel ptx sm_80 …"),
            ("kernel ptx sm_80\na 0 1 2\n", "found 2 capabilities in `a 0 1 2`, expected 1"),
            ("kernel ptx sm_80\na 0 x\n", "found the cell x in `a 0 x`"),
        ] {
            assert_eq!(read(broken).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn differences_are_of_what_was_assembled() {
        let expected = rows(&[("a", &[(80, "32"), (90, "40")]), ("b", &[(80, "9")]), ("gone", &[(80, "8")])]);
        let found = rows(&[("a", &[(80, "32/64")]), ("b", &[]), ("new", &[(80, "16/0/8/4/4")])]);
        assert_eq!(
            differences(&found, &expected),
            [
                "a on sm_80: found 32 registers and 64 bytes of shared memory, expected 32 registers",
                "new on sm_80: found 16 registers and 8 bytes of stack and 4 bytes of stores that spill and 4 bytes of loads that spill, expected no kernel",
                "gone: found no kernel, expected one",
            ]
        );
        assert!(differences(&expected, &expected).is_empty());
    }
}
