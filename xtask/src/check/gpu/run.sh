#!/usr/bin/env bash
# Runs the bundles of this folder on the GPU, compares the tokens with the expected ones, and measures a model of full shape.
#
#   run.sh                   everything
#   run.sh diagnose          what is wrong with this machine, which every other call says first
#   run.sh cases             the tokens of small models, alone and side by side, which are compared with recorded ones
#   run.sh full              the tokens of a model of full shape, which are compared with those of this machine's CPU
#   run.sh speed [VARIANT]   the speed of the model of full shape, and the time of each kernel: of one variant, or of all
#   run.sh peers             the speed of transformers, vLLM and llama.cpp on the same shape, where they are installed, beside ours
#
# Each takes some minutes, so that a machine that is lent for ten can run them one by one. Needs Linux with glibc 2.34, the GPU's
# driver, and 3 GB in $TMPDIR. Installs and builds nothing. The exit status is 0 if every token is as expected, otherwise 1.
#
# What is found is in the folder results as soon as it is found: machine.txt and machine.json have the diagnosis, cases.txt and
# full.txt a line for each comparison, VARIANT.json and VARIANT-kernels.json what mlxcel-bench measured, VARIANT-kernels.txt each
# kernel beside what was predicted, peers/ what other programs measured, and all.jsonl every answer, every measurement and every
# prediction.
#
#   MLXCEL_GPU_DEVICE    another device than cuda, to try it without a GPU
#   MLXCEL_GPU_SECONDS   the longest time of a program [default: @SECONDS@]; with the model of full shape, five times as long
#   MLXCEL_GPU_WEIGHTS   a folder that keeps the weights of full shape for the next run
#   MLXCEL_PEER_…        other programs: see peers.sh
set -euo pipefail

device="${MLXCEL_GPU_DEVICE:-cuda}"
seconds="${MLXCEL_GPU_SECONDS:-@SECONDS@}"
# The model of full shape, and what random-weights knows it by. A rehearsal has a small one and no GPU.
model=@MODEL@
source=@SOURCE@
rehearsal=@REHEARSAL@
# These have no near ties: see xtask/src/check/gpu/mod.rs.
seed=@SEED@
prompt=@PROMPT@
number=48
# Cases that run at a time: most of their time they load programs.
jobs=8
# Enough to measure on a GPU, and to try on a CPU.
sizes=(-p 512 -n 256 -r 5)
kernels=(-p 512 -n 32)
if [[ "$device" != cuda* || -n "$rehearsal" ]]; then
  sizes=(-p 32 -n 2 -r 1)
  kernels=(-p 32 -n 2)
fi
if [[ -n "$rehearsal" ]]; then
  number=6
  jobs=2
fi
# GPUs have the numbers that nvidia-smi gives them.
export CUDA_DEVICE_ORDER=PCI_BUS_ID

# Kernels of bundles called NAME-sm_90 overlap, which only newer GPUs can. Where nobody knows the GPU, errors tell.
is_left_out() { [[ "$1" == *-sm_90 && ( "$device" != cuda* || "${capability:-90}" -lt 90 ) ]]; }

# limited SECONDS NAME COMMAND...: runs a command for so long at most, and passes on its errors after a name
limited() {
  local limit="$1" name="$2" status=0
  shift 2
  timeout --foreground -k 10 "$limit" "$@" 2>"$out.stderr" || status=$?
  ((status != 124 && status != 137)) || echo "found no end after $limit s" >>"$out.stderr"
  ((status == 0)) || sed "s/^/$name: /" "$out.stderr" >&2
  return "$status"
}

# keep NAME FILE [KEY]: appends the JSON in a file to all that was found, in one write, because others append at the same time
keep() { cat <<<"{\"bundle\":\"$1\",\"${3:-found}\":$(tr -d '\n' <"$2")}" >>results/all.jsonl; }

# generate SECONDS DEVICE BUNDLE PROMPT NUMBER [ARGUMENT...]: leaves JSON in $out.json, nothing after an error
generate() {
  local limit="$1" device="$2" bundle="$3" prompt="$4" number="$5"
  shift 5
  limited "$limit" "$bundle on $device" ./mlxcel-run "bundles/$bundle" --device "$device" --tokens "$prompt" -n "$number" \
    --ignore-eos --json "$@" >"$out.json" || { : >"$out.json"; return 1; }
  keep "$bundle" "$out.json"
}

# Prints the generated ids of an answer. The quote excludes the key prompt_tokens; quotes inside a text are escaped.
ids_of() { grep -o '"tokens":\[[0-9,]*\]' | head -n 1 | tr -d '":[]a-z' || true; }

# Prints the generated ids.
tokens() { ids_of <"$out.json"; }

# compare NAME FOUND EXPECTED: prints the result in one write, because others print at the same time
compare() {
  if [[ -n "$2" && "$2" == "$3" ]]; then
    echo "ok      $1"
  else
    cat <<<"FAILED  $1"$'\n'"  found    ${2:-nothing}"$'\n'"  expected $3"
  fi
}

# one_case BUNDLE IDS EXPECTED: compares a line of cases.txt
one_case() {
  is_left_out "$1" && return
  local count
  count="$(tr ',' '\n' <<<"$3" | wc -l)"
  generate "$seconds" "$device" "$1" "$2" "$count" || true
  compare "$1, $(tr ',' '\n' <<<"$2" | wc -l) prompt tokens, $count generated" "$(tokens)" "$3"
}

# side_by_side BUNDLE: compares all of a bundle's cases, each twice, and up to 64 at a time
side_by_side() {
  is_left_out "$1" && return
  local bundle prompt expected request all=() found=() number
  while read -r bundle prompt expected; do
    [[ "$bundle" == "$1" ]] || continue
    all+=("$expected" "$expected")
    request="{\"tokens\":[$prompt],\"max_tokens\":$(tr ',' '\n' <<<"$expected" | wc -l),\"ignore_eos\":true}"
    echo "$request"$'\n'"$request"
  done <cases.txt >"$out.jsonl"
  limited $((5 * seconds)) "$1 on $device" ./mlxcel-run "bundles/$1" --device "$device" -f "$out.jsonl" --parallel 64 \
    --cache-size 128MiB >"$out.json" || true
  # Answers are in the order in which they ended.
  for ((number = 1; number <= ${#all[@]}; ++number)); do
    found+=("$(grep "\"line\":$number[,}]" "$out.json" | ids_of)")
  done
  compare "$1, prompts side by side: ${#all[@]}" "${found[*]}" "${all[*]}"
}

# The script runs itself for each case, with what is exported below.
if [[ "${1:-}" == case || "${1:-}" == side_by_side ]]; then
  out="$scratch/$$"
  run="$1"
  [[ "$run" != case ]] || run=one_case
  "$run" "${@:2}"
  exit
fi

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

if [[ -n "${MLXCEL_GPU_WEIGHTS:-}" ]]; then
  # Relative to the caller's folder.
  mkdir -p "$MLXCEL_GPU_WEIGHTS"
  MLXCEL_GPU_WEIGHTS="$(cd "$MLXCEL_GPU_WEIGHTS" && pwd)"
fi
for name in MLXCEL_PEER_GGUF MLXCEL_PEER_PYTHON MLXCEL_LLAMA_BENCH; do
  [[ "${!name:-/}" == /* || ! -e "${!name}" ]] || declare "$name=$PWD/${!name}"
done
cd "$(dirname "${BASH_SOURCE[0]}")"
for tool in xargs timeout; do
  package=findutils
  [[ "$tool" == xargs ]] || package=coreutils
  command -v "$tool" >/dev/null || fail "found no $tool, expected one in PATH" "install $package"
done
stage="${1:-all}"
only="${2:-}"
case "$stage $#" in
  'all 0' | 'all 1' | 'diagnose 1' | 'cases 1' | 'full 1' | 'speed 1' | 'speed 2' | 'peers 1') ;;
  *) fail "found the arguments $*, expected none, diagnose, cases, full, peers, or speed and a variant" "run.sh cases" ;;
esac
if [[ -n "$only" && ! -d "bundles/$model-$only" ]]; then
  fail "found no bundles/$model-$only, expected a bundle for each variant" "ls bundles"
fi
big=$((5 * seconds))
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
out="$scratch/all"
capability=
source ./diagnose.sh
source ./peers.sh
if ! diagnose || [[ "$stage" == diagnose ]]; then
  mkdir -p results
  cp "$scratch"/machine.* results/
  ((${#errors[@]} == 0))
  exit
fi
export scratch capability
# Of a run of one stage, the results of the others stay.
case "$stage" in
  all) rm -rf results ;;
  speed)
    if [[ -n "$only" ]]; then
      rm -f "results/$only"{,-part,-kernels}.{json,txt}
    else
      rm -f results/*.json results/*-kernels.txt
    fi
    ;;
  *) rm -rf "results/$stage.txt" "results/$stage" ;;
esac
mkdir -p results
cp "$scratch"/machine.* results/
passed=0
failed=0

# follow FILE: passes results on as they come, appends them to a file, and counts them
follow() {
  local line
  while IFS= read -r line; do
    tee -a "$1" <<<"$line"
    case "$line" in
      'ok '*) passed=$((passed + 1)) ;;
      'FAILED '*) failed=$((failed + 1)) ;;
    esac
  done
}

# Makes the weights of full shape if they are missing. They appear as a whole.
make_weights() {
  weights="${MLXCEL_GPU_WEIGHTS:-$scratch}/$model-$seed"
  [[ ! -d "$weights" ]] || return 0
  echo "making the weights of $model from seed $seed"
  limited "$big" random-weights ./random-weights --model "$source" --seed "$seed" --out "$weights"
}

# whole NUMBER EXPONENT: prints a number times a power of ten without fraction, or a dash
whole() { if [[ "$1" =~ ^[0-9] ]]; then LC_ALL=C printf '%.0f' "${1}e$2"; else echo -; fi; }

# measured FILE TEST NUMBER EXPONENT: prints a number of a test that mlxcel-bench measured, times a power of ten, or a dash
measured() {
  local found
  found="$(tr -d ' \n' <"$1" | grep -o "{[^{}]*\"test\":\"$2[^{}]*}" | grep -o "\"$3\":[0-9.]*" | cut -d: -f2 || true)"
  whole "$found" "$4"
}

# of_kernel KEY: prints a field of the kernel in $kernel
of_kernel() { grep -o "\"$1\":[^,}]*" <<<"$kernel" | cut -d: -f2 | tr -d '"'; }

# table_of TEST: prints the kernels of a test, one in each of `rows`, beside what was `predicted`
table_of() {
  local kernel name calls ns us registers step=step_1
  [[ "$1" != *\ pp* ]] || step="step_${1#* pp}"
  printf '%-40s  %6s  %8s  %9s  %6s  %9s\n' "$1" calls us predicted GB/s registers
  for kernel in "${rows[@]}"; do
    name="$(of_kernel name)"
    calls="$(of_kernel calls)"
    ns=$(($(whole "$(of_kernel time_ms)" 6) / calls))
    read -r us registers <<<"${predicted["$step $name"]:-- -}"
    printf '%-40s  %6s  %6d.%d  %9s  %6s  %9s\n' "$name" "$calls" $((ns / 1000)) $((ns % 1000 / 100)) "$us" \
      "$(whole "$(of_kernel bytes_s)" -9)" "$registers"
  done
  rows=()
}

# kernels_of VARIANT: prints the calls and the µs of a call of each kernel in $out.kernels, in prompts and in steps, the µs that
# were predicted, GB/s, and registers on sm_90 for cuda/cuda-sm_90
kernels_of() {
  local step kernel name us registers rows=() test='' is_first=''
  local -A predicted=()
  if [[ -f "predictions/${1%-sm_90}.txt" ]]; then
    while read -r step name us registers; do
      predicted["$step $name"]="$us $registers"
    done <"predictions/${1%-sm_90}.txt"
  fi
  while read -r kernel; do
    if [[ "$kernel" != \"test\"* ]]; then
      rows+=("$kernel")
      continue
    fi
    # Builds differ in the order of keys: a test is named before all of its kernels, or after them.
    [[ -n "$is_first" ]] || { ((${#rows[@]} > 0)) && is_first=no || is_first=yes; }
    [[ "$is_first" == no || -z "$test" ]] || table_of "$1 $test"
    test="$(cut -d'"' -f4 <<<"$kernel")"
    [[ "$is_first" == yes ]] || table_of "$1 $test"
  done < <(tr -d ' \n' <"$out.kernels" | grep -o '{[^{}]*}\|"test":"[^"]*"')
  [[ "$is_first" != yes ]] || table_of "$1 $test"
}

# measure VARIANT PROMPTS STEPS: prints a row with the speeds of a variant, each beside the one that was predicted
measure() {
  [[ -z "$only" || "$only" == "$1" ]] || return 0
  is_left_out "$1" && return
  local name="$model-$1"
  local bench=(./mlxcel-bench "bundles/$name" --device "$device" --weights "$weights" -o json)
  if limited "$big" "$name" "${bench[@]}" "${sizes[@]}" >"$out.bench"; then
    cp "$out.bench" "results/$1.json"
    keep "$name" "$out.bench"
    printf '%-10s  %9s  %9s  %9s  %9s  %9s\n' "$1" "$(measured "$out.bench" pp mean_tok_s 0)" "$2" \
      "$(measured "$out.bench" tg mean_tok_s 0)" "$3" "$(measured "$out.bench" tg bandwidth_share 2)"
  else
    # What it measured before the error.
    cp "$out.bench" "results/$1-part.json"
    failed=$((failed + 1))
    echo "FAILED  the speed of $name"
    return
  fi
  # A profile is for reading, and no reason to lose a speed.
  if limited "$big" "$name" "${bench[@]}" "${kernels[@]}" --profile >"$out.kernels"; then
    kernels_of "$1" >"results/$1-kernels.txt" || true
    tables+=("results/$1-kernels.txt")
    mv "$out.kernels" "results/$1-kernels.json"
    keep "$name" "results/$1-kernels.json"
    local predictions="predictions/${1%-sm_90}.json"
    [[ ! -f "$predictions" ]] || keep "$name" "$predictions" predicted
  else
    failed=$((failed + 1))
    echo "FAILED  the kernels of $name"
  fi
}

run_cases() {
  local cases=0 bundle last=
  # Those of a bundle follow each other.
  while read -r bundle _; do
    is_left_out "$bundle" && continue
    cases=$((cases + 1))
    [[ "$bundle" == "$last" ]] || echo "$bundle"
    last="$bundle"
  done <cases.txt >"$out.bundles"
  ((cases > 0)) || fail "found no case for this GPU in cases.txt, expected some" "pack the folder again"
  cases=$((cases + $(wc -l <"$out.bundles")))
  follow results/cases.txt < <(xargs -P "$jobs" -L 1 "./${BASH_SOURCE[0]##*/}" case <cases.txt)
  follow results/cases.txt < <(xargs -P "$jobs" -L 1 "./${BASH_SOURCE[0]##*/}" side_by_side <"$out.bundles")
  # The status of what `follow` reads from is lost.
  if ((passed + failed != cases)); then
    follow results/cases.txt < <(compare cases.txt "$((passed + failed)) results" "$cases")
  fi
}

run_full() {
  make_weights
  generate "$big" local-task "$model-f32" "$prompt" "$number" --weights "$weights" || true
  local expected bundle
  expected="$(tokens)"
  for bundle in "$model-f32" "$model-f32-sm_90"; do
    is_left_out "$bundle" && continue
    generate "$big" "$device" "$bundle" "$prompt" "$number" --weights "$weights" || true
    follow results/full.txt \
      < <(compare "$bundle on $device, against this machine's CPU" "$(tokens)" "${expected:-nothing on the CPU}")
  done
}

run_speed() {
  make_weights
  # Tokens per second, and the percentage of a copy's bandwidth that steps reach.
  echo "$model on ${device_name:-$device}"
  if [[ -n "$rehearsal" ]]; then
    echo "rehearsal: these numbers are those of an emulated driver, and predictions those of llama-3.2-1b on an H200"
  fi
  printf '%-10s  %9s  %9s  %9s  %9s  %9s\n' variant prompts predicted steps predicted 'of copy'
  local table tables=()
  @FULL@
  for table in "${tables[@]}"; do
    [[ ! -s "$table" ]] || { echo && cat "$table"; }
  done
}

[[ "$stage" != all && "$stage" != cases ]] || run_cases
[[ "$stage" != all && "$stage" != full ]] || run_full
[[ "$stage" != all ]] || echo
[[ "$stage" != all && "$stage" != speed ]] || run_speed
[[ "$stage" != all ]] || echo
[[ "$stage" != all && "$stage" != peers ]] || run_peers
[[ "$stage" != all ]] || echo
[[ -z "$rehearsal" ]] || echo "rehearsed on ${device_name:-$device}: stages and tokens are what counts, times mean nothing"
echo "$passed passed, $failed failed"
[[ "$failed" == 0 ]]
