"""Measures what a JSON schema costs: decoded tokens per second with one and without, in turn.

python format_rate.py --url http://127.0.0.1:8080 [--clients 8] [--tokens 200] [--repeats 5]
"""

import argparse
import concurrent.futures
import json
import statistics
import time

import requests

# No answer of some hundred tokens can end before it is cut: strings are long, and there are many.
SCHEMA = {
    "type": "object",
    "properties": {
        "people": {
            "type": "array",
            "minItems": 1000,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 40},
                    "age": {"type": "integer", "minimum": 0, "maximum": 150},
                    "kind": {"enum": ["friend", "colleague", "stranger"]},
                    "mail": {"type": ["string", "null"], "pattern": "^[a-z]{1,20}@[a-z]{1,20}\\.org$"},
                },
                "required": ["name", "age", "kind", "mail"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["people"],
    "additionalProperties": False,
}


def rate(options, more, seed):
    """Returns the tokens per second of one answer, after its first token."""
    body = {"model": options.model, "prompt": f"{seed} And it came to pass", "max_tokens": options.tokens, "seed": seed, "temperature": 0.8}
    body |= {"stream": True, "stream_options": {"include_usage": True}} | more
    headers = {"Authorization": f"Bearer {options.key}"}
    response = requests.post(options.url + "/v1/completions", json=body, stream=True, timeout=600, headers=headers)
    response.raise_for_status()
    first = tokens = None
    for line in response.iter_lines():
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        assert "error" not in chunk, chunk
        first = first or time.monotonic()
        last = time.monotonic()
        tokens = (chunk.get("usage") or {}).get("completion_tokens", tokens)
    assert tokens == options.tokens, f"{tokens} tokens, expected {options.tokens}"
    return (tokens - 1) / (last - first)


def total(options, more, seed):
    """Returns the sum of the rates of all clients, which ask at once."""
    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        return sum(pool.map(lambda client: rate(options, more, 100 * seed + client), range(options.clients)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="none")
    parser.add_argument("--model", default="", help="needed if several are served")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    of_schema = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}
    free = {"ignore_eos": True}
    total(options, of_schema, 0), total(options, free, 0)
    ratios = []
    for repeat in range(1, options.repeats + 1):
        with_schema, without = total(options, of_schema, repeat), total(options, free, repeat)
        ratios.append(with_schema / without)
        print(f"with a schema {with_schema:9.1f} tok/s   without {without:9.1f} tok/s   ratio {ratios[-1]:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
