//! GPUs that are too small, too old, or lost: what users see of them, on the emulated driver.

use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    emulated::{driver, for_gpu, on_emulator},
    real::{self, Built, Fixture, program},
};

/// The longest time until a process ends. One that hangs fails its test.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a process said.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: Option<i32>,
    stdout: String,
    /// What stderr has from the error on.
    error: String,
}

/// Runs a process to its end.
fn ended(mut command: Command) -> Said {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = command.spawn().unwrap();
    let (id, (sender, output)) = (process.id(), mpsc::channel());
    thread::spawn(move || sender.send(process.wait_with_output()));
    let Ok(output) = output.recv_timeout(PATIENCE) else {
        Command::new("kill").args(["-9", &id.to_string()]).status().unwrap();
        panic!("{command:?} did not end within {PATIENCE:?}");
    };
    let Output { status, stdout, stderr } = output.unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let error = stderr.find("error: ").map_or("", |start| stderr[start..].trim_end()).to_owned();
    Said { code: status.code(), stdout, error }
}

/// Returns an error, before which these tokens were written.
fn failed(tokens: &str, error: &str) -> Said {
    Said { code: Some(1), stdout: tokens.to_owned(), error: error.to_owned() }
}

/// Returns a folder that has the management library beside the driver's.
fn with_nvml() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libcuda.so", "libnvidia-ml.so.1"] {
        symlink(driver().join("libcuda.so"), folder.path().join(name)).unwrap();
    }
    folder
}

fn built() -> Built {
    real::built(&for_gpu(&Fixture::find("gqa"), "cuda"))
}

/// Lets mlxcel-run answer a prompt of a token.
fn run(built: &Built, device: &str, tokens: usize, variables: &[(&str, &str)]) -> Said {
    let mut command = on_emulator(program("mlxcel-run"));
    command.arg(built.bundle.path()).args(["--device", device, "--ignore-eos", "--tokens", "63"]);
    command.args(["-n", &tokens.to_string()]).envs(variables.iter().copied());
    ended(command)
}

/// Checks that a run is refused before anything was allocated or launched.
fn is_refused(built: &Built, device: &str, variables: &[(&str, &str)], error: &str) {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls.txt");
    let variables = [variables, &[("MLXCEL_EMULATOR_COUNTS", calls.to_str().unwrap())]].concat();
    assert_eq!(run(built, device, 1, &variables), failed("", error));
    assert_eq!(fs::read_to_string(calls).unwrap_or_default(), "");
}

#[test]
fn gpus_without_memory_are_refused_before_anything_is_loaded() {
    let (built, nvml) = (built(), with_nvml());
    let nvml = ("LD_LIBRARY_PATH", nvml.path().to_str().unwrap());
    let free = |size| ("MLXCEL_EMULATED_FREE", size);
    is_refused(
        &built,
        "cuda",
        &[nvml, free("40KiB")],
        "error: cannot use the device cuda: 40.0 KiB of its memory are free, expected 117.0 KiB for weights and 32.0 KiB for \
         the smallest cache\n\
         hint: end other programs that use the GPU (nvidia-smi lists them), name another device with --device, or compile the \
         bundle with fewer bits (--quant)",
    );
    is_refused(
        &built,
        "auto",
        &[nvml, free("40KiB"), ("MLXCEL_EMULATED_DEVICES", "2")],
        "error: no target of this bundle runs here\n  \
           cuda: Emulator: 40.0 KiB of its memory are free, expected 117.0 KiB for weights and 32.0 KiB for the smallest cache\n  \
           cuda: Emulator: 40.0 KiB of its memory are free, expected 117.0 KiB for weights and 32.0 KiB for the smallest cache\n\
         hint: end other programs that use the GPU (nvidia-smi lists them), or compile the bundle for this machine, e.g. with \
         --target cpu",
    );
    // Without NVML, CUDA tells how large the memory is, and what is left once the device is open.
    is_refused(
        &built,
        "cuda",
        &[("MLXCEL_EMULATED_MEMORY", "40KiB")],
        "error: no target of this bundle runs on cuda\n  \
           cuda: weights and cache need 0.2 MiB, found 0.0 MiB of memory\n\
         hint: compile the bundle for this machine, e.g. with --target cpu",
    );
    is_refused(
        &built,
        "cuda",
        &[free("40KiB")],
        "error: cannot use the device cuda: 40.0 KiB of its memory are free, expected 117.0 KiB for weights and 32.0 KiB for \
         the smallest cache\n\
         hint: end other programs that use the GPU (nvidia-smi lists them), name another device with --device, or compile the \
         bundle with fewer bits (--quant)",
    );
    // The choice is a GPU that has memory.
    let two = [nvml, ("MLXCEL_EMULATED_DEVICES", "2"), free("40KiB,1GiB")];
    assert_eq!(
        run(&built, "auto", 1, &two),
        Said { code: Some(0), stdout: "32\n".into(), error: String::new() }
    );
}

#[test]
fn old_drivers_and_gpus_are_refused() {
    let built = built();
    let refused = |variable, reason| {
        let error = format!(
            "error: no target of this bundle runs on cuda\n  cuda: {reason}\n\
             hint: compile the bundle for this machine, e.g. with --target cpu"
        );
        is_refused(&built, "cuda", &[variable], &error);
    };
    refused(
        ("MLXCEL_EMULATED_DRIVER", "11050"),
        "its driver supports CUDA 11.5, expected 11.6 or newer for PTX 7.6",
    );
    refused(("MLXCEL_EMULATED_CAPABILITY", "7.5"), "compute capability is 7.5, expected 8.0 or higher");
    is_refused(
        &built,
        "cuda",
        &[("MLXCEL_EMULATED_DEVICES", "0")],
        "error: cannot use the device cuda: failed precondition: CUDA error 'CUDA_ERROR_NO_DEVICE' (100): no CUDA-capable \
         device is detected\n\
         hint: install NVIDIA's driver, or compile the bundle again with --target cpu",
    );
}

#[test]
fn all_gpus_answer_the_same() {
    let (built, two) = (built(), [("MLXCEL_EMULATED_DEVICES", "2")]);
    let found = ["cuda:0", "cuda:1"].map(|device| run(&built, device, 3, &two));
    let expected = Said { code: Some(0), stdout: "32,76,76\n".into(), error: String::new() };
    assert_eq!(found.each_ref(), [&expected; 2]);
    is_refused(
        &built,
        "cuda:2",
        &two,
        "error: cannot use the device cuda:2: out of range: device ordinal 2 out of range; driver has 2 devices enumerated\n\
         hint: there is cuda:0 (Emulator), cuda:1 (Emulator)",
    );
}

/// The third token is that of kernels, of which each is launched by itself; the fifth that of a graph, beside the sixth.
#[test]
fn a_gpu_that_is_lost_ends_an_answer() {
    let built = built();
    let [kernel, graph] = ["0:40", "0:61"];
    let from_iree = |name: &str, number: i32, words: &str| format!("CUDA error '{name}' ({number}): {words}");
    let from_replay = |name: &str, number: i32| format!("internal: CUDA driver error '{name}' ({number})");
    let [xid, reset] = ["CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_CONTEXT_IS_DESTROYED"];
    let cases = [
        (
            ("MLXCEL_EMULATED_LOST", kernel),
            "32,76",
            format!("aborted: {}", from_iree(xid, 719, "unspecified launch failure")),
        ),
        (("MLXCEL_EMULATED_LOST", graph), "32,76,76,76", from_replay(xid, 719)),
        (
            ("MLXCEL_EMULATED_RESET", kernel),
            "32,76",
            format!("internal: {}", from_iree(reset, 709, "context is destroyed")),
        ),
        (("MLXCEL_EMULATED_RESET", graph), "32,76,76,76", from_replay(reset, 709)),
    ];
    for (variable, before, cause) in cases {
        let error = format!(
            "error: cuda, Emulator is lost, expected a device that answers: {cause}\n\
             hint: sudo dmesg | grep Xid shows what NVIDIA's driver noted; load the model again, or on another --device"
        );
        assert_eq!(run(&built, "cuda", 8, &[variable]), failed(before, &error), "{variable:?}");
    }
}
