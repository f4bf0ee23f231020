"""Asks for answers with receipts beside other requests, and has mlxcel-run make each again.

python receipts.py --url http://127.0.0.1:8080 --bundle demo.bundle --program target/debug/mlxcel-run

Every replay has to give the same tokens, with one thread and with two. A receipt with another seed must not hold.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import requests

PROMPT = "In the beginning God created the heaven"
KINDS = {
    "greedy": {"temperature": 0},
    "sampled": {"seed": 1234567890123456789, "temperature": 1.2, "top_p": 0.95},
    "unseeded": {},
    "penalties": {"seed": 5, "presence_penalty": 1, "repetition_penalty": 1.2, "logit_bias": {"10": -100, "20": 3.5}},
    "stop": {"temperature": 0, "stop": ["the", "and"]},
    "several": {"seed": 9, "n": 3, "min_p": 0.05},
    "speculate": {"temperature": 0, "speculate": True, "prompt": "one two three one two three one two"},
    "stream": {"seed": 6, "stream": True},
}


def ask(url, more):
    """Returns the object that has the receipt."""
    body = {"prompt": PROMPT, "max_tokens": 60, "receipt": True, **more}
    response = requests.post(f"{url}/v1/completions", json=body, timeout=120)
    response.raise_for_status()
    if not body.get("stream"):
        return response.json()
    events = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]", events[-1]
    return json.loads(events[-2])


def replay(arguments, answer, threads):
    """Returns the status and the output of a replay."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "answer.json")
        file.write_text(json.dumps(answer))
        command = [arguments.program, arguments.bundle, "--replay", str(file), "-t", str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    for name in ["url", "bundle", "program"]:
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(len(KINDS)) as pool:
        answers = dict(zip(KINDS, pool.map(lambda more: ask(arguments.url, more), KINDS.values())))
    failed = []
    for kind, answer in answers.items():
        for threads in [1, 2]:
            status, output = replay(arguments, answer, threads)
            count = output.count("tokens are equal")
            if status != 0 or count != KINDS[kind].get("n", 1):
                failed.append(f"{kind}, {threads} threads: {output}")
    answers["sampled"]["receipt"]["request"]["sampling"]["seed"] = "7"
    status, output = replay(arguments, answers["sampled"], 2)
    if status != 1 or "FAIL" not in output:
        failed.append(f"another seed: {output}")
    print("\n".join(failed) or f"{len(KINDS)} kinds of answers were made again")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
