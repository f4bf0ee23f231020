//! What the script says of a machine before it runs anything.

use super::*;

/// Diagnoses a machine whose nvidia-smi has these lines. Returns success, stdout, stderr, and what the results keep as JSON.
fn diagnosed(folder: &Path, smi: &str, variables: &[(&str, &str)]) -> (bool, String, String, Value) {
    write(&folder.join("smi.txt"), smi).unwrap();
    let path = std::env::var("PATH").unwrap();
    let (success, stdout, stderr) = run_with(folder, &path, &["diagnose"], variables);
    let kept = read(&folder.join("results/machine.json")).unwrap();
    (success, stdout, stderr, serde_json::from_str(&kept).unwrap())
}

const GOOD: &str = "name NVIDIA H200\ncompute_cap 9.0\ndriver_version 580.95.05\nmemory.total 143771\nmemory.free 143000\n\
    mig.mode.current Disabled\ncompute_mode Default\nutilization.gpu 0\necc.errors.uncorrected.volatile.total 0\n\
    power.limit 700.00\npower.default_limit 700.00\nclocks_event_reasons.sw_power_cap Not Active\n";

#[test]
fn a_machine_without_a_fault_is_described() {
    let folder = packed(RIGHT, FAST);
    let library = folder.path().join("libcuda.so");
    write(&folder.path().join("libcuda.so.580.95.05"), "").unwrap();
    symlink("libcuda.so.580.95.05", &library).unwrap();
    let (success, text, errors, kept) =
        diagnosed(folder.path(), GOOD, &[("LD_LIBRARY_PATH", folder.path().to_str().unwrap())]);
    assert!(success && errors.is_empty(), "{errors}");
    assert!(text.contains(&format!("\ndriver   libcuda.so 580.95.05, {}\n", library.display())), "{text}");
    assert!(
        text.contains(
            "\nGPUs     GPU 0: A\nthis     NVIDIA H200, compute capability 9.0, driver 580.95.05, CUDA Version: 13.0\n\
             memory   143000 of 143771 MiB are free\na token  ran on cuda, A: "
        ),
        "{text}"
    );
    assert!(!text.contains("warning"), "{text}");
    assert_eq!((&kept["device"], &kept["errors"]), (&"cuda, A".into(), &Value::Array(vec![])));
    assert_eq!(read(&folder.path().join("results/machine.txt")).unwrap(), text.trim_end().to_owned() + "\n");
}

#[test]
fn what_disturbs_measurements_is_a_warning() {
    let folder = packed(RIGHT, FAST);
    program(
        folder.path(),
        "dmesg",
        "#!/bin/sh\necho '[1.5] NVRM: Xid (PCI:0000:01:00): 79, it fell off the bus'\n",
    );
    let smi = "name A\ncompute_cap 8.9\nmemory.free 24000\nmig.mode.current Enabled\ncompute_mode Exclusive_Process\n\
        utilization.gpu 97\necc.errors.uncorrected.volatile.total 2\npower.limit 200.00\npower.default_limit 450.00\n\
        clocks_event_reasons.sw_power_cap Active\napp 77, python3, 1000 MiB\napp [Not Found]\n";
    let (success, text, errors, kept) = diagnosed(folder.path(), smi, &[]);
    assert!(success && errors.is_empty(), "{errors}");
    let warnings: Vec<_> = text.lines().filter(|line| line.starts_with("warning: ")).collect();
    insta::assert_snapshot!(warnings.join("\n"), @r"
    warning: the GPU is in compute mode Exclusive_Process: cases run one by one
    warning: another program uses the GPU: 77, python3, 1000 MiB
    warning: the GPU is in use: 97 % of the last second
    warning: MIG is enabled: what runs here is a part of the GPU
    warning: found 2 uncorrected errors of memory since the driver was loaded: tokens may be wrong
    warning: the power limit is 200.00 W, by default 450.00 W
    warning: clocks are held down: sw_power_cap
    warning: the kernel's log has an error of a GPU: Xid (PCI:0000:01:00): 79, it fell off the bus
    ");
    assert!(text.starts_with("warning: "), "{text}");
    assert_eq!(kept["warnings"].as_array().unwrap().len(), warnings.len());
}

#[test]
fn fields_that_a_driver_does_not_know_cost_no_others() {
    let folder = packed(RIGHT, FAST);
    let unknown: String = ["hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "sw_power_cap"]
        .map(|reason| format!("unknown clocks_event_reasons.{reason}\n"))
        .concat();
    let smi = format!("{GOOD}{unknown}clocks_throttle_reasons.hw_slowdown Active\n");
    let (success, text, ..) = diagnosed(folder.path(), &smi, &[]);
    assert!(success && text.starts_with("warning: clocks are held down: hw_slowdown\n"), "{text}");
    assert!(text.contains("NVIDIA H200, compute capability 9.0"), "{text}");
}

#[test]
fn what_makes_a_run_pointless_ends_it() {
    let path = std::env::var("PATH").unwrap();
    // Whatever starts no program is reported at a time.
    let folder = packed(RIGHT, FAST);
    let smi = "name T4\ncompute_cap 7.5\nmemory.free 900\ncompute_mode Prohibited\n";
    let (success, text, errors, kept) = diagnosed(folder.path(), smi, &[]);
    assert!(!success && !text.contains("a token"), "{text}");
    insta::assert_snapshot!(errors, @r"
    error: found a GPU of compute capability 7.5, expected 8.0 or higher
    hint: name a newer GPU of this machine: CUDA_VISIBLE_DEVICES=1 ./run.sh
    error: found 900 MiB of free memory on the GPU, expected 8192 for the model of full shape
    hint: end what uses it (nvidia-smi lists it), or run small models alone: ./run.sh cases
    error: found the GPU in compute mode Prohibited, expected Default
    hint: nvidia-smi -i 0 -c DEFAULT
    ");
    assert_eq!(kept["errors"].as_array().unwrap().len(), 3);
    // Small models need less memory.
    write(&folder.path().join("smi.txt"), "name A\ncompute_cap 8.9\nmemory.free 900\n").unwrap();
    let (success, text, errors) = run_stage(folder.path(), &path, &["cases"]);
    assert!(success && text.ends_with("2 passed, 0 failed\n"), "{text}{errors}");
    let (success, text, errors) = run_stage(folder.path(), &path, &["full"]);
    assert!(!success && text.is_empty() && errors.contains("expected 8192 for the model"), "{text}{errors}");
    // The results of an earlier run stay.
    assert!(folder.path().join("results/cases.txt").is_file());
    // A copy lost what makes programs programs.
    fs::set_permissions(folder.path().join("mlxcel-bench"), fs::Permissions::from_mode(0o644)).unwrap();
    let (_, _, errors, _) = diagnosed(folder.path(), GOOD, &[]);
    assert!(errors.starts_with("error: found no executable mlxcel-bench, "), "{errors}");
}

#[test]
fn a_full_disk_is_found_before_weights_are_made() {
    let folder = packed(RIGHT, FAST);
    program(
        folder.path(),
        "df",
        "#!/bin/sh\necho 'Filesystem 1024-blocks Used Available'\necho 'x 9 9  1048576 1% /'\n",
    );
    let (success, _, errors, _) = diagnosed(folder.path(), GOOD, &[]);
    assert!(!success && errors.starts_with("error: found 1024 MiB free in "), "{errors}");
    assert!(
        errors.contains(", expected 3072 for the weights of full shape\nhint: name another folder: "),
        "{errors}"
    );
}

#[test]
fn a_driver_that_does_not_serve_is_explained() {
    let answer = "echo 'error: cannot use the device cuda: libcuda.so not found' >&2\n\
        echo 'hint: install the driver, or run on the CPU' >&2; exit 1";
    let folder = packed(answer, FAST);
    write(&folder.path().join("libcuda.so.1"), "").unwrap();
    let here = folder.path().to_str().unwrap();
    let (success, text, errors, _) = diagnosed(folder.path(), GOOD, &[("LD_LIBRARY_PATH", here)]);
    if text.contains(&format!("driver   no libcuda.so, only {here}/libcuda.so.1\n")) {
        assert!(!success, "{text}");
        assert_eq!(
            errors,
            format!(
                "error: found no token of bundles/demo on cuda, expected one: cannot use the device cuda: libcuda.so not \
                 found\nhint: mkdir driver && ln -s {here}/libcuda.so.1 driver/libcuda.so && \
                 LD_LIBRARY_PATH=$PWD/driver ./run.sh\n"
            )
        );
    } else {
        // This machine has a driver.
        assert!(text.contains("driver   libcuda.so"), "{text}");
    }
    // Without nvidia-smi nobody says more, and other errors keep their hints.
    let folder = packed("echo 'error: no room' >&2; echo 'hint: make room' >&2; exit 1", FAST);
    program(folder.path(), "nvidia-smi", "#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n");
    let (success, text, errors, _) = diagnosed(folder.path(), "", &[]);
    assert!(!success && text.starts_with("warning: nvidia-smi fails: NVIDIA-SMI has failed\n"), "{text}");
    assert!(errors.ends_with(", expected one: no room\nhint: make room\n"), "{errors}");
}

#[test]
fn the_gpu_is_the_one_that_cuda_takes() {
    let folder = packed(RIGHT, FAST);
    let smi = SMI.replace("#!/bin/sh\n", "#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/asked.txt\"\n");
    program(folder.path(), "nvidia-smi", &smi);
    let asked = |variables: &[(&str, &str)]| {
        _ = fs::remove_file(folder.path().join("asked.txt"));
        assert!(diagnosed(folder.path(), GOOD, variables).0);
        let asked = read(&folder.path().join("asked.txt")).unwrap();
        let asked = asked.lines().find(|line| line.contains("--query-gpu")).unwrap();
        asked.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(asked(&[]), "0");
    assert_eq!(asked(&[("CUDA_VISIBLE_DEVICES", "3,GPU-5")]), "3");
    assert_eq!(asked(&[("CUDA_VISIBLE_DEVICES", "3,GPU-5"), ("MLXCEL_GPU_DEVICE", "cuda:1")]), "GPU-5");
    assert_eq!(asked(&[("MLXCEL_GPU_DEVICE", "cuda:1")]), "1");
}

#[test]
fn an_emulated_driver_is_no_gpu() {
    let emulated = RIGHT.replace("cuda, A", "cuda, Emulator");
    let folder = packed(&emulated, FAST);
    let (success, text, ..) = diagnosed(folder.path(), GOOD, &[]);
    assert!(
        success && text.starts_with("warning: this is no GPU but an emulated driver: times, speeds and"),
        "{text}"
    );
    // A rehearsal says so with its results, and asks no nvidia-smi.
    fs::remove_file(folder.path().join("run.sh")).unwrap();
    program(folder.path(), "run.sh", &filled(SCRIPTS[0].1, &REHEARSAL, "1", &predictions()));
    write(&folder.path().join("diagnose.sh"), &filled(SCRIPTS[1].1, &REHEARSAL, "1", &predictions()))
        .unwrap();
    program(folder.path(), "nvidia-smi", "#!/bin/sh\nexit 1\n");
    let (success, text, errors) = run(folder.path(), &std::env::var("PATH").unwrap());
    assert!(success, "{text}{errors}");
    assert!(
        text.contains("small on cuda, Emulator\nrehearsal: these numbers are those of an emulated driver"),
        "{text}"
    );
    let end = "rehearsed on cuda, Emulator: stages and tokens are what counts, times mean nothing\n6 passed, 0 failed\n";
    assert!(text.ends_with(end), "{text}");
}
