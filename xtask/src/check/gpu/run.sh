#!/usr/bin/env bash
# Runs the bundles of this folder on the GPU, and compares the tokens with the expected ones.
#
# Needs Linux with glibc 2.34, the GPU's driver, and 3 GB in $TMPDIR. Installs and builds nothing. The exit status is 0 if
# every token is as expected, otherwise 1. MLXCEL_GPU_DEVICE names another device than cuda, to try it without a GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

device="${MLXCEL_GPU_DEVICE:-cuda}"
# These have no near ties: see xtask/src/check/gpu/mod.rs.
seed=@SEED@
prompt=@PROMPT@
number=48

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

# generate DEVICE BUNDLE PROMPT NUMBER [ARGUMENT...]: writes JSON to $scratch/json, and errors to stderr
generate() {
  local device="$1" bundle="$2" prompt="$3" number="$4"
  shift 4
  ./mlxcel-run "bundles/$bundle" --device "$device" --tokens "$prompt" -n "$number" --ignore-eos --json "$@" \
    >"$scratch/json" 2>"$scratch/stderr" || { cat "$scratch/stderr" >&2; : >"$scratch/json"; return 1; }
}

# Prints the generated ids. The quote excludes the key prompt_tokens; quotes inside a text are escaped.
tokens() { grep -o '"tokens":\[[0-9,]*\]' "$scratch/json" | head -n 1 | tr -d '":[]a-z' || true; }
number_of() { grep -o "\"$1\":[0-9.]*" "$scratch/json" | head -n 1 | cut -d: -f2 || true; }

# compare NAME FOUND EXPECTED: prints the result and counts it
compare() {
  if [[ -n "$2" && "$2" == "$3" ]]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n  found    %s\n  expected %s\n' "$1" "${2:-nothing}" "$3"
  fi
}

while read -r bundle ids expected; do
  count="$(tr ',' '\n' <<<"$expected" | wc -l)"
  generate "$device" "$bundle" "$ids" "$count" || true
  compare "$bundle, $(tr ',' '\n' <<<"$ids" | wc -l) prompt tokens, $count generated" "$(tokens)" "$expected"
done <cases.txt

echo "making the weights of llama-3.2-1b from seed $seed"
./random-weights --model llama-3.2-1b --seed "$seed" --out "$scratch/weights"
generate local-task llama-3.2-1b-f32 "$prompt" "$number" --weights "$scratch/weights" || true
expected="$(tokens)"
generate "$device" llama-3.2-1b-f32 "$prompt" "$number" --weights "$scratch/weights" || true
compare "llama-3.2-1b f32 on $device, against this machine's CPU" "$(tokens)" "${expected:-nothing on the CPU}"
for precision in @FULL@; do
  # The prompt fills the largest prefill bucket.
  if generate "$device" "llama-3.2-1b-$precision" "$(seq -s, 1 256)" 128 --weights "$scratch/weights"; then
    device_name="$(grep -o '"device":"[^"]*"' "$scratch/json" | cut -d'"' -f4)"
    printf 'llama-3.2-1b %s on %s: prefill %s tok/s, decode %s tok/s, load %s ms\n' "$precision" "$device_name" \
      "$(number_of prefill_tok_s)" "$(number_of decode_tok_s)" "$(number_of load_ms)"
  else
    failed=$((failed + 1))
  fi
done

echo "$passed passed, $failed failed"
[[ "$failed" == 0 ]]
