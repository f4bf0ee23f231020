"""Asks for answers of many JSON schemas, and validates each answer.

python schemas.py --url http://127.0.0.1:8080 [--folder JSONSchemaBench/data --count 500]

Without a folder the schemas are generated. A schema that cannot be enforced has to be refused with 400; every other answer
has to be of the schema, or the beginning of one if it was cut off. Anything else fails.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import sys
import time

import jsonschema
import requests

LENGTH = 600
BIAS = 16
AT_ONCE = 8


def scalar(dice):
    low = dice.randint(-50, 50)
    return dice.choice(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"type": "integer", "minimum": low, "maximum": low + dice.randint(0, 200)},
            {"type": "number", "minimum": low, "exclusiveMaximum": low + 5},
            {"type": "integer", "multipleOf": dice.choice([2, 5, 10]), "minimum": 0, "maximum": 1000},
            {"type": "string", "minLength": dice.randint(0, 3), "maxLength": dice.randint(3, 12)},
            {"type": "string", "pattern": dice.choice(["^[a-z]{2,5}$", "^(ab|cd)+$", "^\\d{3}-\\d{2}$", "^.{1,6}$"])},
            {"type": "string", "format": dice.choice(["date", "time", "date-time", "ipv4", "uuid", "email"])},
            {"enum": [dice.choice(["red", "grün", "", "a\"b", "\n"]), dice.randint(0, 9), None, [1], {"k": True}]},
            {"const": dice.choice([0, -1.5, "x", None, [], {"a": [False]}])},
        ]
    )


def schema(dice, depth=0):
    """Makes a schema with some of what schemas can have."""
    if depth >= 3 or dice.random() < 0.25:
        return scalar(dice)
    inner = lambda: schema(dice, depth + 1)
    kind = dice.randrange(5)
    if kind == 0:
        return {"type": "array", "items": inner(), "minItems": dice.randint(0, 2), "maxItems": dice.randint(2, 4)}
    if kind == 1:
        return {"type": "array", "prefixItems": [inner(), inner()], "items": False, "minItems": 2}
    if kind == 2:
        return {"anyOf": [inner(), inner()]}
    names = dice.sample(["id", "name", "a b", "größe", "x-y", "type", "$ref2"], dice.randint(1, 4))
    made = {"type": "object", "properties": {name: inner() for name in names}, "additionalProperties": False}
    made["required"] = [name for name in names if dice.random() < 0.7]
    if kind == 3 and depth == 0:
        made["$defs"] = {"node": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}]}}
        made["properties"]["tree"] = {"$ref": "#/$defs/node"}
    return made


def generated(count, seed):
    dice = random.Random(seed)
    return [(f"generated {number}", schema(dice)) for number in range(count)]


def read(folder, count, seed):
    """Reads schemas at random, the same for the same seed."""
    files = sorted(pathlib.Path(folder).rglob("*.json"))
    files = random.Random(seed).sample(files, min(count, len(files)))
    return [(str(file.relative_to(folder)), json.loads(file.read_text())) for file in files]


def validator(wanted):
    checker = jsonschema.validators.validator_for(wanted, jsonschema.Draft202012Validator)
    return checker(wanted, format_checker=checker.FORMAT_CHECKER)


def is_beginning(text):
    """Says whether a text is the beginning of JSON, as far as the standard library's scanner can tell."""
    try:
        json.loads(text)
        return True
    except json.JSONDecodeError as error:
        # What is missing is missed at the end; a string that does not end is missed at its begin.
        rest = text[error.pos :]
        return rest.strip() == "" or rest.startswith('"') or len(rest) < 12


def ending(url, key, model):
    """Returns a bias to what ends strings, objects and lists, so that fewer answers are cut off."""
    tokens = {}
    for text in ['"', "}", "]", '"}', '"]', '",', "},", "],"]:
        found = requests.post(
            url + "/tokenize", json={"content": text, "model": model}, timeout=60, headers={"Authorization": f"Bearer {key}"}
        ).json()["tokens"]
        if len(found) == 1:
            tokens[str(found[0])] = BIAS
    return tokens


def ask(options, bias, item):
    """Returns what became of a schema, and why it is wrong if it is."""
    name, wanted = item
    body = {
        "model": options.model,
        "messages": [{"role": "user", "content": "And it came to pass"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": wanted}},
        "max_tokens": LENGTH,
        "seed": options.seed,
        "logit_bias": bias,
    }
    start = time.monotonic()
    headers = {"Authorization": f"Bearer {options.key}"}
    response = requests.post(options.url + "/v1/chat/completions", json=body, timeout=120, headers=headers)
    seconds = time.monotonic() - start
    if response.status_code == 400:
        error = response.json()["error"]
        return name, "refused", error["message"], seconds
    if response.status_code != 200:
        return name, "failed", f"{response.status_code} {response.text[:200]}", seconds
    choice = response.json()["choices"][0]
    text = choice["message"]["content"]
    if choice["finish_reason"] == "length":
        return (name, "cut", "", seconds) if is_beginning(text) else (name, "wrong", f"no JSON: {text!r}", seconds)
    try:
        validator(wanted).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return name, "wrong", f"{text!r}: {str(error)[:300]}", seconds
    except Exception as error:  # The validator cannot judge every schema that is in a folder.
        return name, "not judged", f"{type(error).__name__}: {error}"[:200], seconds
    return name, "valid", "", seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="none")
    parser.add_argument("--model", default="", help="needed if several are served")
    parser.add_argument("--folder", help="a folder of schemas, such as JSONSchemaBench's data")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="name each schema that is refused, too")
    options = parser.parse_args()
    items = read(options.folder, options.count, options.seed) if options.folder else generated(options.count, options.seed)
    bias = ending(options.url, options.key, options.model)
    found, slowest = collections.Counter(), ("", 0.0)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name, outcome, why, seconds in pool.map(lambda item: ask(options, bias, item), items):
            found[outcome] += 1
            slowest = max(slowest, (name, seconds), key=lambda pair: pair[1])
            if outcome in ("failed", "wrong", "not judged") or (options.verbose and outcome == "refused"):
                print(f"{outcome}: {name}: {why}")
    print(f"{sum(found.values())} schemas: " + ", ".join(f"{count} {outcome}" for outcome, count in found.most_common()))
    print(f"slowest: {slowest[1]:.1f} s, {slowest[0]}")
    bad = found["failed"] + found["wrong"]
    # A server that refuses everything proves nothing.
    return 1 if bad or found["valid"] < len(items) / 4 else 0


if __name__ == "__main__":
    sys.exit(main())
