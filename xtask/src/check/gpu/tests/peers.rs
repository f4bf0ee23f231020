//! Other programs beside ours: fake ones, in their own formats.

use super::*;

/// A Python with the programs, as `peers.py` answers.
const PYTHON: &str = r#"#!/bin/sh
case "$2 $3" in
  'measure eager') echo '[{"peer":"eager","program":"transformers 5, torch 2","test":"pp512","mean_tok_s":33000.5,"samples_tok_s":[1.0]},
    {"peer":"eager","test":"tg256","mean_tok_s":91.06,"samples_tok_s":[1.0]}]';;
  'measure compiled') echo 'RuntimeError: no compiler' >&2; exit 1;;
  'measure vllm') echo 'not here: python3 finds no module vllm';;
  tokens*) echo 3,4;;
  *.gguf*) test -d "$2" && echo GGUF >"$3";;
esac
"#;

/// What llama-bench prints with `-o json`, without most fields.
const LLAMA: &str = r#"#!/bin/sh
test -f "$2" || exit 1
echo '[
  {
    "gpu_info": "NVIDIA A",
    "backends": "CUDA",
    "n_prompt": 512,
    "n_gen": 0,
    "avg_ts": 7100.002165,
    "samples_ts": [ 6863.1, 7147.55 ]
  },
  {
    "backends": "CUDA",
    "n_prompt": 0,
    "n_gen": 256,
    "avg_ts": 455.3,
    "samples_ts": [ 119.03, 120.178 ]
  }
]'
"#;

#[test]
fn speeds_of_others_are_beside_ours() {
    let path = std::env::var("PATH").unwrap();
    let packed = packed(RIGHT, FAST);
    let folder = packed.path();
    program(folder, "python-of-peers", PYTHON);
    program(folder, "llama-bench", LLAMA);
    fs::create_dir_all(folder.join("bundles/llama-3.2-1b-bf16")).unwrap();
    let peers = [("MLXCEL_PEER_PYTHON", "python-of-peers")];
    assert!(run_with(folder, &path, &["speed", "bf16"], &peers).0);
    let (success, text, errors) = run_with(folder, &path, &["peers"], &peers);
    assert!(success, "{text}{errors}");
    let (_, text) = text.split_once("\n\n").unwrap();
    insta::assert_snapshot!(text, @r"
    making the weights of llama-3.2-1b from seed 0
    llama-3.2-1b in bf16, tokens per second of other programs and of ours; the ratio is how many times as fast we are
    program                   prompts       ours   ratio      steps       ours   ratio
    transformers              33000.5    66988.4    2.02       91.0      910.6   10.00
    transformers, compiled  failed: RuntimeError: no compiler
    vLLM                    not here: python3 finds no module vllm
    llama.cpp, CUDA            7100.0    66988.4    9.43      455.3      910.6    2.00
    ok      llama-3.2-1b-f32 on cuda, against transformers on cuda
    1 passed, 0 failed
    ");
    assert_eq!(errors, "transformers, compiled: RuntimeError: no compiler\n");
    let kept = |name: &str| read(&folder.join("results/peers").join(name)).unwrap();
    assert!(kept("eager.json").contains("33000.5") && kept("llama.cpp.json").contains("7100.002165"));
    assert_eq!(kept("compiled-error.txt"), "RuntimeError: no compiler\n");
    assert!(kept("table.txt").starts_with("transformers  "));
    let all = read(&folder.join("results/all.jsonl")).unwrap();
    let all: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(all.iter().any(|found| found["bundle"] == "llama.cpp" && found["found"][1]["n_gen"] == 256));
    // Other tokens are a failure.
    program(folder, "other-python", &PYTHON.replace("3,4", "3,5"));
    let (success, text, _) = run_with(folder, &path, &["peers"], &[("MLXCEL_PEER_PYTHON", "other-python")]);
    assert!(
        !success && text.contains("against transformers on cuda\n  found    3,4\n  expected 3,5\n"),
        "{text}"
    );
}

#[test]
fn what_is_not_here_is_no_failure() {
    let path = std::env::var("PATH").unwrap();
    let packed = packed(RIGHT, FAST);
    let folder = packed.path();
    // One whose answer is for the CPU.
    program(folder, "llama-bench", &LLAMA.replace("CUDA", "BLAS"));
    program(folder, "python-of-peers", "#!/bin/sh\ntest \"$1\" != peers.py || echo 'not here: no torch'\n");
    let variables = [("MLXCEL_PEER_PYTHON", "python-of-peers"), ("MLXCEL_PEER_GGUF", "cases.txt")];
    let (success, text, errors) = run_with(folder, &path, &["peers"], &variables);
    assert!(success && errors.is_empty(), "{text}{errors}");
    let (_, text) = text.split_once("\n\n").unwrap();
    insta::assert_snapshot!(text, @r"
    making the weights of llama-3.2-1b from seed 0
    llama-3.2-1b in bf16, tokens per second of other programs and of ours; the ratio is how many times as fast we are
    ours is not measured yet: ./run.sh speed bf16, and bf16-sm_90
    program                   prompts       ours   ratio      steps       ours   ratio
    transformers            not here: no torch
    transformers, compiled  not here: no torch
    vLLM                    not here: no torch
    llama.cpp               not here: llama-bench has the backends BLAS, expected CUDA
    tokens of transformers  not here: no torch
    0 passed, 0 failed
    ");
    // Nothing at all.
    for name in ["llama-bench", "python-of-peers"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let (success, text, errors) = run_with(folder, &path, &["peers"], &[]);
    assert!(success && errors.is_empty(), "{text}{errors}");
    assert_eq!(text.matches("not here: found no no-python").count(), 4, "{text}");
}

/// Runs `peers.py` with a module in place of the real one.
fn peers_py(modules: &[(&str, &str)], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in modules {
        write(&folder.path().join(name).with_extension("py"), text).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/check/gpu/peers.py");
    let mut command = Command::new("python3");
    command.arg("-S").arg("-B").arg(script).args(arguments).env("PYTHONPATH", folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const TORCH: &str = "__version__ = '2'\n\
    class cuda:\n    is_available = staticmethod(lambda: HAS_GPU)\n\
    def set_float32_matmul_precision(name): assert name == 'highest'\n";

#[test]
fn programs_of_python_that_are_missing_are_named() {
    let measure = ["measure", "eager", "folder", "cuda", "16", "2", "1"];
    let text = peers_py(&[], &measure);
    assert!(text.starts_with("not here: ") && text.ends_with(" finds no module torch\n"), "{text}");
    let torch = TORCH.replace("HAS_GPU", "False");
    assert_eq!(peers_py(&[("torch", &torch)], &measure), "not here: PyTorch 2 finds no GPU\n");
    let broken = "raise OSError('libcudart.so.13: cannot open shared object file')";
    let text = peers_py(&[("torch", broken)], &measure);
    assert_eq!(text, "not here: torch does not load: libcudart.so.13: cannot open shared object file\n");
    let torch = TORCH.replace("HAS_GPU", "True");
    let text = peers_py(&[("torch", &torch)], &["measure", "vllm", "folder", "cuda", "16", "2", "1"]);
    assert!(text.ends_with(" finds no module vllm\n"), "{text}");
    let text = peers_py(&[], &["measure", "vllm", "folder", "cpu", "16", "2", "1"]);
    assert_eq!(text, "not here: vLLM is for GPUs\n");
}

#[test]
fn vllm_is_measured_without_its_prompt() {
    // A prompt takes a hundredth of a second, and each token after the first a tenth.
    let vllm = "import os, time\n__version__ = '0'\nprint('noise')\nos.system('echo noise')\n\
        class SamplingParams:\n    def __init__(self, **options): self.__dict__.update(options)\n\
        class LLM:\n\
        \x20   def __init__(self, model, load_format, skip_tokenizer_init, enable_prefix_caching, **options):\n\
        \x20       assert (model, load_format, enable_prefix_caching) == ('folder', 'dummy', False)\n\
        \x20   def generate(self, prompts, sampling_params, use_tqdm):\n\
        \x20       assert prompts[0]['prompt_token_ids'] and sampling_params.ignore_eos\n\
        \x20       time.sleep(0.01 + 0.1 * (sampling_params.max_tokens - 1))\n";
    let torch = TORCH.replace("HAS_GPU", "True");
    let arguments = ["measure", "vllm", "folder", "cuda", "16", "2", "1"];
    let text = peers_py(&[("torch", &torch), ("vllm", vllm)], &arguments);
    let rows: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&rows[0]["test"], &rows[1]["test"]), (&"pp16".into(), &"tg2".into()));
    let speeds = [0, 1].map(|row| rows[row]["mean_tok_s"].as_f64().unwrap());
    // A busy machine sleeps longer.
    assert!(speeds[0] <= 1600.0 && speeds[1] < 12.0 && speeds[1] > 1.0, "{speeds:?}");
}
