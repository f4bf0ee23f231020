#!/usr/bin/env bash
# Runs the bundles beside it on this machine's GPU and compares tokens with the expected ones.
#
# Needs a Linux with glibc 2.34, the GPU's driver, and 3 GB in $TMPDIR; nothing is installed or built. Ends with 0 when
# every token is as expected, with 1 otherwise. MLXCEL_GPU_DEVICE names another device than cuda, for a trial without one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

device="${MLXCEL_GPU_DEVICE:-cuda}"
# Without near ties: see cargo xtask gpu-check in the source.
seed=@SEED@
prompt=@PROMPT@
number=48

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

# generate DEVICE BUNDLE PROMPT NUMBER [ARGUMENT...]: leaves the JSON in $scratch/json; what went wrong goes to stderr
generate() {
  local device="$1" bundle="$2" prompt="$3" number="$4"
  shift 4
  ./mlxcel-run "bundles/$bundle" --device "$device" --tokens "$prompt" -n "$number" --ignore-eos --json "$@" \
    >"$scratch/json" 2>"$scratch/stderr" || { cat "$scratch/stderr" >&2; : >"$scratch/json"; return 1; }
}

# The generated ids. The quote before it tells the key from prompt_tokens, and a text's own quotes are escaped.
tokens() { grep -o '"tokens":\[[0-9,]*\]' "$scratch/json" | head -n 1 | tr -d '":[]a-z' || true; }
number_of() { grep -o "\"$1\":[0-9.]*" "$scratch/json" | head -n 1 | cut -d: -f2 || true; }

# compare NAME FOUND EXPECTED
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
  # A prompt that fills the largest prefill bucket, and enough steps to measure.
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
