"""Measures another program on a checkpoint, for `run.sh peers`. Downloads nothing.

    python3 peers.py measure eager|compiled|vllm FOLDER DEVICE PROMPT STEPS REPEATS
    python3 peers.py tokens FOLDER DEVICE 1,2,3 NUMBER

`measure` prints JSON as mlxcel-bench does, in bf16: tokens per second of a prompt (`ppPROMPT`) and of steps after one token
(`tgSTEPS`). `eager` is transformers as it comes, `compiled` the same with torch.compile and a static cache. vLLM makes up weights
of the checkpoint's shape. `tokens` prints what transformers generates in f32, as ids.

If the program is not installed, or has no such device, the only line is `not here: REASON`.
"""

import importlib
import inspect
import json
import os
import sys
import time

# What transformers' static cache has room for beside the measured tokens, and vLLM beside its own.
ROOM = 16


class NotHere(Exception):
    """The program cannot run on this machine."""


def module(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise NotHere(f"{sys.executable} finds no module {error.name}") from error
    except (ImportError, OSError) as error:
        # PyTorch without its libraries, or one for another version of CUDA.
        raise NotHere(f"{name} does not load: {str(error).splitlines()[0]}") from error


def torch_for(device):
    """Returns PyTorch, whose matrix products are those of the element type and not of a shorter one."""
    torch = module("torch")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise NotHere(f"PyTorch {torch.__version__} finds no GPU")
    torch.set_float32_matmul_precision("highest")
    return torch


def load(torch, folder, device, dtype):
    transformers = module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
    return transformers, model.to(device).eval()


class Transformers:
    """A model of transformers and its cache, one sequence at a time."""

    def __init__(self, folder, device, dtype, length, compiled):
        self.torch = torch_for(device)
        self.device = device
        self.library, self.model = load(self.torch, folder, device, getattr(self.torch, dtype))
        self.length = length
        self.compiled = compiled
        # Before transformers 5 the static cache is told where to write.
        self.takes_places = "cache_position" in inspect.signature(self.model.forward).parameters
        self.prompt = self.step = self.forward
        if compiled:
            self.prompt = self.torch.compile(self.forward, dynamic=False)
            # Its CUDA graphs keep their outputs in place.
            self.step = self.torch.compile(self.forward, dynamic=False, fullgraph=True, mode="reduce-overhead")
        self.cache = None
        self.reset()

    def reset(self):
        if not self.compiled:
            self.cache = self.library.DynamicCache(config=self.model.config)
        elif self.cache is None:
            self.cache = self.library.StaticCache(config=self.model.config, max_cache_len=self.length)
        else:
            # In place: a new one would be compiled for again.
            self.cache.reset()

    def forward(self, ids, places):
        """Returns the best token after the last of `ids`."""
        told = {"cache_position": places[0]} if self.takes_places else {}
        found = self.model(
            input_ids=ids, position_ids=places, past_key_values=self.cache, use_cache=True, logits_to_keep=1, **told
        )
        return found.logits[:, -1].argmax(-1, keepdim=True)

    def generate(self, ids, steps):
        """Yields the tokens after a prompt, which stay on the device."""
        torch = self.torch
        token = torch.tensor([ids], device=self.device)
        places = torch.arange(len(ids), device=self.device)[None]
        token = self.prompt(token, places).clone()
        yield token
        places = places[:, -1:].clone()
        for _ in range(steps):
            places += 1
            token = self.step(token, places).clone()
            yield token

    def wait(self):
        if self.device.startswith("cuda"):
            self.torch.cuda.synchronize()

    def seconds(self, ids, steps):
        """Returns how long a prompt takes, and how long the steps after it."""
        self.reset()
        self.wait()
        times = [time.perf_counter()]
        tokens = self.generate(ids, steps)
        next(tokens)
        self.wait()
        times.append(time.perf_counter())
        for _ in tokens:
            pass
        self.wait()
        times.append(time.perf_counter())
        return times[1] - times[0], times[2] - times[1]


def with_transformers(folder, device, prompt, steps, repeats, compiled):
    model = Transformers(folder, device, "bfloat16", max(prompt, steps) + ROOM, compiled)
    vocabulary = model.model.config.vocab_size
    prompt_ids = [(7 * index + 1) % vocabulary for index in range(prompt)]
    with model.torch.inference_mode() if not compiled else model.torch.no_grad():
        # The first calls compile, the second record CUDA graphs.
        for _ in range(3):
            model.seconds(prompt_ids, 0)
            model.seconds([1], min(steps, 4))
        prompts = [prompt / model.seconds(prompt_ids, 0)[0] for _ in range(repeats)]
        generated = [steps / model.seconds([1], steps)[1] for _ in range(repeats)]
    return f"transformers {model.library.__version__}, torch {model.torch.__version__}", prompts, generated


def with_vllm(folder, device, prompt, steps, repeats):
    if not device.startswith("cuda"):
        raise NotHere("vLLM is for GPUs")
    torch_for(device)
    vllm = module("vllm")
    model = vllm.LLM(
        model=folder,
        load_format="dummy",
        dtype="bfloat16",
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        max_model_len=max(prompt, steps + 1) + ROOM,
        max_num_seqs=1,
        gpu_memory_utilization=0.5,
    )

    def seconds(ids, number):
        sampling = vllm.SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=number, detokenize=False)
        start = time.perf_counter()
        model.generate([{"prompt_token_ids": ids}], sampling_params=sampling, use_tqdm=False)
        return time.perf_counter() - start

    prompt_ids = [7 * index % 997 + 1 for index in range(prompt)]
    for _ in range(2):
        seconds(prompt_ids, 1)
        seconds([1], steps + 1)
    prompts = [prompt / seconds(prompt_ids, 1) for _ in range(repeats)]
    # Without the prompt of one token, which a step follows.
    generated = [steps / (seconds([1], steps + 1) - seconds([1], 1)) for _ in range(repeats)]
    return f"vllm {vllm.__version__}", prompts, generated


def measure(peer, folder, device, prompt, steps, repeats):
    if peer == "vllm":
        what, prompts, generated = with_vllm(folder, device, prompt, steps, repeats)
    else:
        what, prompts, generated = with_transformers(folder, device, prompt, steps, repeats, peer == "compiled")
    tests = [(f"pp{prompt}", prompts), (f"tg{steps}", generated)]
    rows = [
        {"peer": peer, "program": what, "device": device, "test": test, "mean_tok_s": sum(all) / len(all), "samples_tok_s": all}
        for test, all in tests
    ]
    return json.dumps(rows)


def tokens(folder, device, prompt, number):
    ids = [int(id) for id in prompt.split(",")]
    model = Transformers(folder, device, "float32", 0, compiled=False)
    with model.torch.inference_mode():
        found = model.torch.cat(list(model.generate(ids, number - 1)), 1)
    return ",".join(map(str, found[0].tolist()))


def main(task, *arguments):
    # What libraries and their processes print must not mix with the result.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        if task == "measure":
            peer, folder, device, *counts = arguments
            result = measure(peer, folder, device, *map(int, counts))
        else:
            folder, device, prompt, number = arguments
            result = tokens(folder, device, prompt, int(number))
    except NotHere as reason:
        result = f"not here: {reason}"
    print(result, file=output, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
