# The speed of other programs on the same weights, beside ours. A part of run.sh, which reads this file.
#
#   MLXCEL_PEER_PYTHON   the Python with torch and transformers, or with vllm [default: python3]
#   MLXCEL_PEER_DEVICE   what PyTorch calls the device [default: cuda]
#   MLXCEL_LLAMA_BENCH   llama-bench of a CUDA build [default: the one in PATH]
#   MLXCEL_PEER_GGUF     a GGUF file of this shape for it; without, that Python makes one, if it has the package gguf
#   MLXCEL_PEER_SECONDS  the longest time of a program, which may compile for minutes [default: 600]
#
# Nothing is installed or downloaded: what is not here is left out.
python="${MLXCEL_PEER_PYTHON:-python3}"
peer_device="${MLXCEL_PEER_DEVICE:-cuda}"
peer_seconds="${MLXCEL_PEER_SECONDS:-600}"

# best TEST: prints our best tokens per second in bf16, in hundredths, or a dash
best() {
  local file found best=-
  for file in results/bf16.json results/bf16-sm_90.json; do
    [[ -f "$file" ]] || continue
    found="$(measured "$file" "$1" mean_tok_s 2)"
    [[ "$found" == - ]] || { [[ "$best" != - ]] && ((found <= best)); } || best="$found"
  done
  echo "$best"
}

# hundredths NUMBER: prints a number of hundredths with one place, or a dash
hundredths() { if [[ "$1" == - ]]; then echo -; else printf '%d.%d' $(($1 / 100)) $(($1 % 100 / 10)); fi; }

# ratio OURS THEIRS: prints how many times as fast we are, or a dash
ratio() {
  local times
  if [[ "$1" == - || "$2" == - || "$2" == 0 ]]; then
    echo -
  else
    times=$(($1 * 100 / $2))
    printf '%d.%02d' $((times / 100)) $((times % 100))
  fi
}

# row NAME FILE PROMPTS_TEST STEPS_TEST KEY: prints a program's speeds beside ours
row() {
  local test theirs ours cells=()
  for test in "$3" "$4"; do
    theirs="$(measured "$2" "$test" "$5" 2)"
    ours="$(best "${test:0:2}")"
    cells+=("$(hundredths "$theirs")" "$(hundredths "$ours")" "$(ratio "$ours" "$theirs")")
  done
  printf '%-22s  %9s  %9s  %6s  %9s  %9s  %6s\n' "$1" "${cells[@]}"
}

# python_peer NAME PEER: measures a program of Python
python_peer() {
  local prompts=512 steps=256 repeats=5
  [[ "$peer_device" == cuda* && -z "$rehearsal" ]] || { prompts=32 steps=2 repeats=1; }
  if ! command -v "$python" >/dev/null; then
    printf '%-22s  not here: found no %s\n' "$1" "$python"
  elif ! limited "$peer_seconds" "$1" "$python" peers.py measure "$2" "$weights" "$peer_device" "$prompts" "$steps" "$repeats" \
    >"$out.peer"; then
    cp "$out.stderr" "results/peers/$2-error.txt"
    printf '%-22s  failed: %s\n' "$1" "$(tail -n 1 "$out.stderr")"
  elif [[ "$(<"$out.peer")" == 'not here: '* ]]; then
    printf '%-22s  %s\n' "$1" "$(<"$out.peer")"
  else
    cp "$out.peer" "results/peers/$2.json"
    keep "$1" "$out.peer"
    row "$1" "$out.peer" pp tg mean_tok_s
  fi
}

# Prints the GGUF file to measure, or why there is none.
gguf_file() {
  local file="$scratch/$model.gguf"
  if [[ -n "${MLXCEL_PEER_GGUF:-}" ]]; then
    file="$MLXCEL_PEER_GGUF"
  elif ! limited "$big" "a GGUF file" "$python" write_gguf.py "$weights" "$file"; then
    echo "not here: no GGUF file, which MLXCEL_PEER_GGUF names or $python makes with the package gguf"
    return
  fi
  [[ -f "$file" ]] && echo "$file" || echo "not here: found no file $file"
}

# Measures llama.cpp.
llama_peer() {
  local bench="${MLXCEL_LLAMA_BENCH:-llama-bench}" file name=llama.cpp backends sizes=(-p 512 -n 256 -r 5)
  [[ "$peer_device" == cuda* && -z "$rehearsal" ]] || sizes=(-p 32 -n 2 -r 1)
  if ! command -v "$bench" >/dev/null; then
    printf '%-22s  not here: found no %s\n' "$name" "$bench"
    return
  fi
  file="$(gguf_file)"
  if [[ "$file" == 'not here: '* ]]; then
    printf '%-22s  %s\n' "$name" "$file"
    return
  fi
  if ! limited "$peer_seconds" "$name" "$bench" -m "$file" -ngl 99 "${sizes[@]}" -o json >"$out.peer"; then
    cp "$out.stderr" results/peers/llama.cpp-error.txt
    printf '%-22s  failed: %s\n' "$name" "$(tail -n 1 "$out.stderr")"
    return
  fi
  backends="$(grep -m 1 -o '"backends": *"[^"]*"' "$out.peer" | cut -d'"' -f4 || true)"
  if [[ "$peer_device" == cuda* && "$backends" != *CUDA* ]]; then
    printf '%-22s  not here: %s has the backends %s, expected CUDA\n' "$name" "$bench" "${backends:-none}"
    return
  fi
  cp "$out.peer" results/peers/llama.cpp.json
  keep "$name" "$out.peer"
  # It names tests by two numbers.
  tr -d ' \n' <"$out.peer" | sed 's/"n_prompt":[1-9]/"test":"pp",&/g; s/"n_gen":[1-9]/"test":"tg",&/g' >"$out.named"
  row "$name, $backends" "$out.named" pp tg avg_ts
}

# Compares our greedy tokens in f32 with those of transformers, from the same weights.
compare_tokens() {
  local bundle="$model-f32"
  command -v "$python" >/dev/null || { echo "tokens of transformers  not here: found no $python"; return; }
  if ! limited "$peer_seconds" transformers "$python" peers.py tokens "$weights" "$peer_device" "$prompt" "$number" \
    >"$out.peer"; then
    echo "tokens of transformers  failed: $(tail -n 1 "$out.stderr")"
    return
  fi
  if [[ "$(<"$out.peer")" == 'not here: '* ]]; then
    echo "tokens of transformers  $(<"$out.peer")"
    return
  fi
  generate "$big" "$device" "$bundle" "$prompt" "$number" --weights "$weights" || true
  follow results/peers.txt \
    < <(compare "$bundle on $device, against transformers on $peer_device" "$(tokens)" "$(<"$out.peer")")
}

run_peers() {
  make_weights
  mkdir -p results/peers
  echo "$model in bf16, tokens per second of other programs and of ours; the ratio is how many times as fast we are"
  [[ "$(best pp)" != - ]] || echo "ours is not measured yet: ./run.sh speed bf16, and bf16-sm_90"
  [[ -z "$rehearsal" ]] || echo "rehearsal: ours is on an emulated GPU, theirs on a CPU"
  printf '%-22s  %9s  %9s  %6s  %9s  %9s  %6s\n' program prompts ours ratio steps ours ratio
  {
    python_peer transformers eager
    python_peer 'transformers, compiled' compiled
    python_peer vLLM vllm
    llama_peer
  } | tee results/peers/table.txt
  compare_tokens
}
