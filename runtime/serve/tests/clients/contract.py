"""Sends a server what its OpenAPI document allows and what it does not, and compares every answer with the document.

python contract.py --url http://127.0.0.1:8080 [--key KEY] [--examples 30] [--seed 1]
"""

import argparse
import subprocess
import sys

# Of the other checks, positive_data_acceptance takes no refusal of options that contradict each other.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "ignored_auth",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="the server, such as http://127.0.0.1:8080")
    parser.add_argument("--key", help="an API key, if the server needs one")
    parser.add_argument("--examples", type=int, default=30, help="the most requests of each operation and kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    command = [
        # Its program has the path of the folder that the environment was made in.
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        options.url + "/openapi.json",
        f"--checks={','.join(CHECKS)}",
        f"--max-examples={options.examples}",
        f"--seed={options.seed}",
        "--phases=examples,coverage,fuzzing",
        "--continue-on-failure",
        "--suppress-health-check=all",
        "--generation-database=none",
        "--request-timeout=60",
    ]
    if options.key:
        command += ["--header", f"Authorization: Bearer {options.key}"]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
