#!/usr/bin/env bash
# Runs the bundles of this folder on the GPU, compares the tokens with the expected ones, and measures a model of full shape.
#
# Needs Linux with glibc 2.34, the GPU's driver, and 3 GB in $TMPDIR. Installs and builds nothing. The exit status is 0 if
# every token is as expected, otherwise 1. What mlxcel-bench measured is left in the folder results, with the time of each
# kernel. To try it without a GPU, MLXCEL_GPU_DEVICE names another device than cuda, and MLXCEL_GPU_FULL=no leaves out the
# model of full shape.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

device="${MLXCEL_GPU_DEVICE:-cuda}"
# These have no near ties: see xtask/src/check/gpu/mod.rs.
seed=@SEED@
prompt=@PROMPT@
number=48
# Cases that run at a time: most of their time they load programs.
jobs=8
# Enough to measure on a GPU, and to try on a CPU.
sizes=(-p 512 -n 256 -r 5)
kernels=(-p 512 -n 32 -r 1)
[[ "$device" == cuda ]] || { sizes=(-p 16 -n 2 -r 1); kernels=("${sizes[@]}"); }

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir -p results
passed=0
failed=0

# Kernels of bundles called NAME-sm_90 overlap, which only newer GPUs can. Where nvidia-smi is missing, errors tell.
capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d . || true)"
is_left_out() { [[ "$1" == *-sm_90 && ( "$device" != cuda || "${capability:-90}" -lt 90 ) ]]; }

# generate DEVICE BUNDLE PROMPT NUMBER [ARGUMENT...]: writes JSON to $scratch/json, and errors to stderr
generate() {
  local device="$1" bundle="$2" prompt="$3" number="$4"
  shift 4
  ./mlxcel-run "bundles/$bundle" --device "$device" --tokens "$prompt" -n "$number" --ignore-eos --json "$@" \
    >"$scratch/json" 2>"$scratch/stderr" || { cat "$scratch/stderr" >&2; : >"$scratch/json"; return 1; }
}

# Prints the generated ids. The quote excludes the key prompt_tokens; quotes inside a text are escaped.
tokens() { grep -o '"tokens":\[[0-9,]*\]' "$scratch/json" | head -n 1 | tr -d '":[]a-z' || true; }

# compare NAME FOUND EXPECTED: prints the result
compare() {
  if [[ -n "$2" && "$2" == "$3" ]]; then
    echo "ok      $1"
  else
    printf 'FAILED  %s\n  found    %s\n  expected %s\n' "$1" "${2:-nothing}" "$3"
  fi
}

# Passes results on, and counts them.
count() {
  local lines
  lines="$(cat)"
  [[ -z "$lines" ]] || echo "$lines"
  passed=$((passed + $(grep -c '^ok ' <<<"$lines" || true)))
  failed=$((failed + $(grep -c '^FAILED ' <<<"$lines" || true)))
}

# one_case BUNDLE IDS EXPECTED: compares a line of cases.txt
one_case() {
  is_left_out "$1" && return
  local number
  number="$(tr ',' '\n' <<<"$3" | wc -l)"
  generate "$device" "$1" "$2" "$number" || true
  compare "$1, $(tr ',' '\n' <<<"$2" | wc -l) prompt tokens, $number generated" "$(tokens)" "$3"
}

# measured TEST NUMBER EXPONENT: prints a number of a test that mlxcel-bench measured, times a power of ten, or a dash
measured() {
  local found
  found="$(tr -d ' \n' <"$scratch/bench" | grep -o "{[^{}]*\"test\":\"$1[^{}]*}" | grep -o "\"$2\":[0-9.]*" | cut -d: -f2 || true)"
  if [[ -n "$found" ]]; then LC_ALL=C printf '%.0f' "${found}e$3"; else echo -; fi
}

# measure VARIANT STEPS: prints a row with the speeds of a variant, and the steps per second that were predicted
measure() {
  is_left_out "$1" && return
  local bench=(./mlxcel-bench "bundles/llama-3.2-1b-$1" --device "$device" --weights "$scratch/weights" -o json)
  if ! "${bench[@]}" "${sizes[@]}" >"$scratch/bench" 2>"$scratch/stderr" ||
    ! "${bench[@]}" "${kernels[@]}" --profile >"results/$1-kernels.json" 2>"$scratch/stderr"; then
    cat "$scratch/stderr" >&2
    failed=$((failed + 1))
    echo "FAILED  the speed of llama-3.2-1b-$1"
    return
  fi
  cp "$scratch/bench" "results/$1.json"
  printf '%-10s  %9s  %9s  %9s  %9s\n' "$1" "$(measured pp mean_tok_s 0)" "$(measured tg mean_tok_s 0)" \
    "$(measured tg bandwidth_share 2)" "$2"
}

# The script runs itself for each case.
if [[ "${1:-}" == case ]]; then
  one_case "${@:2}"
  exit
fi
command -v xargs >/dev/null || { printf 'error: found no xargs, expected one in PATH\nhint: install findutils\n' >&2; exit 1; }
cases=0
while read -r bundle _; do
  is_left_out "$bundle" || cases=$((cases + 1))
done <cases.txt
((cases > 0)) || { printf 'error: found no case for this GPU in cases.txt, expected some\nhint: pack the folder again\n' >&2; exit 1; }
count < <(xargs -P "$jobs" -L 1 "./${BASH_SOURCE[0]##*/}" case <cases.txt)
# The status of what `count` reads from is lost.
if ((passed + failed != cases)); then
  printf 'FAILED  cases.txt\n  found    %s results\n  expected %s\n' "$((passed + failed))" "$cases"
  failed=$((failed + 1))
fi

if [[ "${MLXCEL_GPU_FULL:-yes}" == yes ]]; then
  echo "making the weights of llama-3.2-1b from seed $seed"
  ./random-weights --model llama-3.2-1b --seed "$seed" --out "$scratch/weights"
  generate local-task llama-3.2-1b-f32 "$prompt" "$number" --weights "$scratch/weights" || true
  expected="$(tokens)"
  for bundle in llama-3.2-1b-f32 llama-3.2-1b-f32-sm_90; do
    is_left_out "$bundle" && continue
    generate "$device" "$bundle" "$prompt" "$number" --weights "$scratch/weights" || true
    count < <(compare "$bundle on $device, against this machine's CPU" "$(tokens)" "${expected:-nothing on the CPU}")
  done
  echo
  # Tokens per second, and the percentage of a copy's bandwidth that steps reach.
  echo "llama-3.2-1b on $(grep -o '"device":"[^"]*"' "$scratch/json" | cut -d'"' -f4 || true)"
  printf '%-10s  %9s  %9s  %9s  %9s\n' variant prompts steps 'of copy' predicted
  @FULL@
  echo
fi

echo "$passed passed, $failed failed"
[[ "$failed" == 0 ]]
