//! `cargo xtask ptxas`: assembles every kernel for GPUs with the real ptxas, and compares what each takes with a table.
//!
//! Bundles carry PTX, which has registers without number. How many a thread of a GPU needs, and whether it spills, only the
//! assembler says, which is the driver's where a bundle runs.

mod table;
mod usage;

use std::{
    cmp::Reverse,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use self::{
    table::{Row, Table},
    usage::Usage,
};
use super::goldens::{Scope, write_kernels};
use crate::{
    parallel, shell,
    toolchain::{detect, setup::setup, wheels},
    workspace::Workspace,
};

/// The compute capabilities that kernels are assembled for.
const CAPABILITIES: [u32; 7] = [80, 86, 89, 90, 100, 120, 121];
/// In CI, one of so many kernels is assembled for its lowest capability although its PTX is the table's.
const SAMPLE: usize = 16;
/// The hexadecimal digits of a digest in the table.
const DIGITS: usize = 12;

const TABLE: &str = "emitter/tests/ptxas.txt";
/// Kernels that may spill, with the reason.
const SPILLS: &[(&str, &str)] = &[
    (
        "cuda_matmul_gated_g6_large-sm_80",
        "24 bytes, on sm_120 and sm_121 alone: both halves of a group have sums, and threads have all 255 registers there are",
    ),
    (
        "cuda_prefill_attention_q8_256-sm_80",
        "16 bytes, on sm_120 and sm_121 alone: with heads of 256 dimensions, threads have all 255 registers there are",
    ),
];

/// The PTX of a kernel.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    /// The kernel's name, and what it is compiled for: `cuda_argmax-sm_80`.
    name: String,
    /// The lowest compute capability.
    since: u32,
    /// The beginning of the digest.
    digest: String,
    path: PathBuf,
    size: u64,
}

impl Kernel {
    /// Returns the capabilities that it is for.
    fn capabilities(&self) -> impl Iterator<Item = u32> {
        let since = self.since;
        CAPABILITIES.into_iter().filter(move |capability| *capability >= since)
    }
}

/// Assembles kernels and compares them with the table. With `bless`, writes the table first: what is not assembled stays as it is.
pub(crate) fn ptxas(workspace: &Workspace, scope: Scope, bless: bool) -> Result<()> {
    setup(workspace)?;
    let folder = workspace.root.join("target/ptxas");
    write_kernels(workspace, &folder)?;
    let kernels = kernels(&folder)?;
    let path = workspace.root.join(TABLE);
    let read = || table::read(&fs::read_to_string(&path).context(TABLE)?).context(TABLE);
    let (jobs, known) = match scope {
        Scope::All => (jobs(&kernels), Table::new()),
        Scope::Parts => {
            let known = read()?;
            (jobs_of_parts(&kernels, &known), known)
        }
    };
    let found = assemble(&detect::ptxas_path(workspace), &kernels, &jobs)?;
    if bless {
        let version = detect::version_of_ptxas(workspace).unwrap_or_default();
        let all = table::completed(found.clone(), &known);
        fs::write(&path, table::write(&all, &CAPABILITIES, &version)).context(TABLE)?;
    }
    check(&found, &read()?)?;
    shell::print(&format!("{} kernels, assembled {} times, are as in {TABLE}\n", kernels.len(), jobs.len()))
}

/// Returns every kernel with each of its capabilities.
fn jobs(kernels: &[Kernel]) -> Vec<(&Kernel, u32)> {
    kernels
        .iter()
        .flat_map(|kernel| kernel.capabilities().map(move |capability| (kernel, capability)))
        .collect()
}

/// Returns those whose PTX is not the table's, because the kernel or its compiler has changed, and a sample of the others: the same
/// PTX gives the same code.
fn jobs_of_parts<'k>(kernels: &'k [Kernel], table: &Table) -> Vec<(&'k Kernel, u32)> {
    let is_known = |kernel: &Kernel| table.get(&kernel.name).is_some_and(|row| row.digest == kernel.digest);
    let of = |(index, kernel): (usize, &'k Kernel)| {
        let count = match is_known(kernel) {
            false => CAPABILITIES.len(),
            true => usize::from(index.is_multiple_of(SAMPLE)),
        };
        kernel.capabilities().take(count).map(move |capability| (kernel, capability))
    };
    kernels.iter().enumerate().flat_map(of).collect()
}

/// Refuses what spills, and what is not as expected.
fn check(found: &Table, expected: &Table) -> Result<()> {
    let all = found.iter().flat_map(|(kernel, row)| row.usages.iter().map(move |of| (kernel, of)));
    let spilling: Vec<_> = all
        .filter(|(kernel, (_, usage))| usage.spills() && !may_spill(kernel))
        .map(|(kernel, (capability, usage))| {
            let found = table::words(Some(*usage));
            format!("{kernel} on sm_{capability}: found {found}, expected none that spill")
        })
        .collect();
    if !spilling.is_empty() {
        bail!(
            "{}\nhint: give the kernel less to hold at a time, or add it to SPILLS in {} with a reason",
            spilling.join("\n"),
            file!()
        );
    }
    let differences = table::differences(found, expected);
    if !differences.is_empty() {
        bail!(
            "{}\n{TABLE}: found {} that differ, expected none\nhint: cargo xtask ptxas --bless, and say why in the commit",
            differences.join("\n"),
            differences.len()
        );
    }
    Ok(())
}

/// Returns whether a kernel may spill.
fn may_spill(kernel: &str) -> bool {
    SPILLS.iter().any(|(known, _)| *known == kernel)
}

/// Returns the kernels of a folder, sorted by name.
fn kernels(folder: &Path) -> Result<Vec<Kernel>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(name) = file.strip_suffix(".ptx").map(str::to_owned) {
            let since = name.rsplit_once("-sm_").and_then(|(_, number)| number.parse().ok());
            let since = since.with_context(|| format!("{file}: found another name than KERNEL-sm_N.ptx"))?;
            let mut digest = wheels::sha256_of(&path)?;
            digest.truncate(DIGITS);
            found.push(Kernel { name, since, digest, path, size: metadata.len() });
        }
    }
    if found.is_empty() {
        bail!("{}: found no kernel, expected at least one", folder.display());
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Assembles kernels for capabilities. Returns rows of all kernels.
fn assemble(ptxas: &Path, kernels: &[Kernel], jobs: &[(&Kernel, u32)]) -> Result<Table> {
    let mut jobs = jobs.to_vec();
    // The largest first, so that no core waits at the end for one that another has just begun.
    jobs.sort_by_key(|(kernel, _)| Reverse(kernel.size));
    let usages = parallel::map(&jobs, |(kernel, capability)| usage_of(ptxas, &kernel.path, *capability));
    let row = |kernel: &Kernel| Row { digest: kernel.digest.clone(), ..Row::default() };
    let mut table: Table = kernels.iter().map(|kernel| (kernel.name.clone(), row(kernel))).collect();
    for ((kernel, capability), usage) in jobs.into_iter().zip(usages) {
        table.entry(kernel.name.clone()).or_default().usages.insert(capability, usage?);
    }
    Ok(table)
}

/// Assembles PTX for a compute capability.
fn usage_of(ptxas: &Path, path: &Path, capability: u32) -> Result<Usage> {
    let code = path.with_extension(format!("{capability}.cubin"));
    let mut command = Command::new(ptxas);
    command.args(["--verbose", "--gpu-name", &format!("sm_{capability}"), "--output-file"]);
    let (stdout, stderr) = shell::outputs(command.arg(&code).arg(path))?;
    // All of them take hundreds of megabytes.
    fs::remove_file(&code).with_context(|| code.display().to_string())?;
    Usage::of_output(&(stdout + &stderr)).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cell: &str) -> Table {
        let usages = [(80, Usage::read(cell).unwrap())].into();
        [("cuda_a-sm_80".to_owned(), Row { digest: "0".into(), usages })].into()
    }

    #[test]
    fn what_spills_is_refused_even_if_the_table_has_it() {
        let spilling = table("255/0/8/4/4");
        let error = check(&spilling, &spilling).unwrap_err().to_string();
        assert!(error.starts_with("cuda_a-sm_80 on sm_80: found 255 registers and "), "{error}");
        assert!(error.contains(", expected none that spill\nhint: "), "{error}");
        // What is listed is another kernel.
        let listed = [(SPILLS[0].0.to_owned(), spilling["cuda_a-sm_80"].clone())].into();
        check(&listed, &listed).unwrap();
    }

    #[test]
    fn a_change_names_the_remedy() {
        check(&table("32"), &table("32")).unwrap();
        let error = check(&table("40"), &table("32")).unwrap_err().to_string();
        assert_eq!(
            error,
            "cuda_a-sm_80 on sm_80: found 40 registers, expected 32 registers\n\
             emitter/tests/ptxas.txt: found 1 that differ, expected none\n\
             hint: cargo xtask ptxas --bless, and say why in the commit"
        );
    }

    #[test]
    fn in_parts_what_has_changed_is_assembled_for_all() {
        let kernel = |index: usize| Kernel {
            name: format!("cuda_{index:02}-sm_90"),
            since: 90,
            digest: "1".into(),
            path: PathBuf::new(),
            size: 1,
        };
        let all: Vec<_> = (0..20).map(kernel).collect();
        let known = |kernel: &Kernel| {
            // The third has other PTX.
            let digest = if kernel.name.starts_with("cuda_03") { "2" } else { "1" };
            (kernel.name.clone(), Row { digest: digest.into(), usages: table::Usages::new() })
        };
        // One of them is new.
        let known: Table = all[..19].iter().map(known).collect();
        let found = jobs_of_parts(&all, &known);
        let found: Vec<_> =
            found.iter().map(|(kernel, capability)| (&kernel.name[5..7], *capability)).collect();
        let of_all = |name| [90, 100, 120, 121].map(|capability| (name, capability));
        let expected = [&[("00", 90)][..], &of_all("03"), &[("16", 90)], &of_all("19")].concat();
        assert_eq!(found, expected);
        assert_eq!(jobs(&all).len(), 20 * 4);
    }

    #[test]
    fn kernels_are_the_ptx_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let error = kernels(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with(": found no kernel, expected at least one"), "{error}");
        for file in ["b-sm_90.ptx", "a-sm_80.ptx", "a-sm_80.80.cubin", "attention-x86_64_v3.o"] {
            fs::write(folder.path().join(file), "text").unwrap();
        }
        let found = kernels(folder.path()).unwrap();
        let found: Vec<_> = found.iter().map(|kernel| (kernel.name.as_str(), kernel.since)).collect();
        assert_eq!(found, [("a-sm_80", 80), ("b-sm_90", 90)]);
    }

    #[test]
    fn the_table_has_every_capability() {
        let root = Workspace::find().root;
        let expected = table::read(&fs::read_to_string(root.join(TABLE)).unwrap()).unwrap();
        let of = |kernel: &str| expected[kernel].usages.keys().copied().collect::<Vec<_>>();
        assert_eq!(of("cuda_argmax-sm_80"), CAPABILITIES);
        assert_eq!(of("cuda_argmax-sm_90"), CAPABILITIES[3..]);
        for (kernel, reason) in SPILLS {
            assert!(!reason.is_empty());
            assert!(expected[*kernel].usages.values().any(Usage::spills), "{kernel} spills no more");
        }
    }
}
