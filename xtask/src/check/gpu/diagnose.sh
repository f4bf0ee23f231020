# What of this machine makes the check pointless, and what only disturbs measurements. A part of run.sh, which reads this file.
#
# Sets `device_name`, `capability` to the GPU's compute capability without its dot, nothing if nobody knows it, and `jobs` to 1 if a GPU serves
# one program at a time.

# The least compute capability that kernels are compiled for.
least_capability=80
# What nvidia-smi is asked: older drivers call the last ones clocks_throttle_reasons.
fields=(name compute_cap driver_version memory.total memory.free mig.mode.current compute_mode utilization.gpu
  ecc.errors.uncorrected.volatile.total power.limit power.default_limit clocks_event_reasons.hw_slowdown
  clocks_event_reasons.hw_thermal_slowdown clocks_event_reasons.sw_thermal_slowdown
  clocks_event_reasons.sw_power_cap clocks_event_reasons.applications_clocks_setting)
declare -A smi=()
facts=()
device_name=
errors=()
hints=()
warnings=()

fact() { facts+=("$(printf '%-8s %s' "$1" "$2")"); }

# wrong FOUND_AND_EXPECTED HINT: notes what makes the check pointless
wrong() { errors+=("$1"); hints+=("$2"); }

# json_of TEXT: prints a JSON string
json_of() {
  local text="${1//\\/\\\\}"
  text="${text//$'\t'/ }"
  printf '"%s"' "${text//\"/\\\"}"
}

# json_list TEXT...: prints a JSON array of strings
json_list() {
  local text separator=
  printf '['
  for text in "$@"; do
    printf '%s' "$separator" && json_of "$text"
    separator=,
  done
  printf ']'
}

# The GPU as nvidia-smi knows it: an index, or what CUDA_VISIBLE_DEVICES calls it.
number_of_gpu() {
  local index=0 visible=()
  [[ "$device" != cuda:* ]] || index="${device#cuda:}"
  IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-}"
  echo "${visible[index]:-$index}"
}

query() { nvidia-smi -i "$gpu" --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null; }

# Asks nvidia-smi for all fields at a time, and if that fails, one by one: a driver refuses a list with a field that it does not
# know.
ask_smi() {
  local text field index values=()
  if text="$(query "$(IFS=, && echo "${fields[*]}")")"; then
    IFS=, read -ra values <<<"$text"
  else
    for field in "${fields[@]}"; do
      # What is wrong with a field it says on stdout.
      text="$(query "$field")" || text="$(query "${field/event/throttle}")" || text=
      values+=("$text")
    done
  fi
  for index in "${!fields[@]}"; do
    text="${values[index]:-}"
    text="${text# }"
    # What it does not know it says in words.
    case "$text" in
      '[N/A]' | 'N/A' | '[Not Supported]' | '[Unknown Error]') text= ;;
    esac
    smi["${fields[index]}"]="$text"
  done
}

# library NAME: prints the path at which the loader finds a library
library() {
  local folder name flags path folders=()
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
  for folder in "${folders[@]}"; do
    [[ -z "$folder" || ! -e "$folder/$1" ]] || { echo "$folder/$1"; return; }
  done
  while read -r name flags _ path; do
    # A library for programs of 32 bits has no architecture.
    [[ "$name" != "$1" || "$flags" == '(libc6)' ]] || { echo "$path"; return; }
  done < <(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null)
  for folder in /lib64 /usr/lib64 /lib /usr/lib "/usr/lib/$(uname -m)-linux-gnu"; do
    [[ ! -e "$folder/$1" ]] || { echo "$folder/$1"; return; }
  done
}

# Describes the driver, and says what to do if programs do not find it.
look_at_driver() {
  local path file version='' no_module
  path="$(library libcuda.so)"
  no_driver='install the driver of the GPU, or start the container with its GPUs (docker run --gpus all)'
  if [[ -n "$path" ]]; then
    file="$(readlink -f "$path" || echo "$path")"
    [[ "$file" != *.so.*.* ]] || version=" ${file##*.so.}"
    fact driver "libcuda.so$version, $path"
    no_driver="nvidia-smi says whether the driver runs; a restart loads one that was updated"
    return
  fi
  path="$(library libcuda.so.1)"
  if [[ -n "$path" ]]; then
    fact driver "no libcuda.so, only $path"
    no_driver="mkdir driver && ln -s $path driver/libcuda.so && LD_LIBRARY_PATH=\$PWD/driver ./run.sh"
  else
    no_module='the kernel has no module of NVIDIA either'
    [[ ! -e /proc/driver/nvidia/version ]] || no_module="the kernel's module is there"
    fact driver "no libcuda.so; $no_module"
  fi
}

# Describes the GPU, and what else it does.
look_at_gpu() {
  local text field line number=0
  gpu="$(number_of_gpu)"
  if ! command -v nvidia-smi >/dev/null; then
    warnings+=("found no nvidia-smi: nobody knows what else the GPU does, nor its clocks")
    return
  fi
  if ! text="$(nvidia-smi -L 2>&1)"; then
    warnings+=("nvidia-smi fails: $(head -n 1 <<<"$text")")
    return
  fi
  while IFS= read -r line; do
    fact GPUs "${line%% (UUID*}"
  done <<<"$text"
  ask_smi
  text="${smi[compute_cap]//./}"
  [[ ! "$text" =~ ^[0-9]+$ ]] || capability="$text"
  text="$(nvidia-smi 2>/dev/null | grep -o 'CUDA.* Version: *[0-9][0-9.]*' | head -n 1 || true)"
  fact this "${smi[name]:-GPU $gpu}, compute capability ${smi[compute_cap]:-unknown}, driver ${smi[driver_version]:-unknown}${text:+, $text}"
  fact memory "${smi[memory.free]:-unknown} of ${smi[memory.total]:-unknown} MiB are free"
  if [[ -n "$capability" ]] && ((capability < least_capability)); then
    wrong "found a GPU of compute capability ${smi[compute_cap]}, expected 8.0 or higher" \
      "name a newer GPU of this machine: CUDA_VISIBLE_DEVICES=1 ./run.sh"
  fi
  if [[ "$needs_weights" == yes && "${smi[memory.free]}" =~ ^[0-9]+$ ]] && ((${smi[memory.free]} < @GPU_MIB@)); then
    wrong "found ${smi[memory.free]} MiB of free memory on the GPU, expected @GPU_MIB@ for the model of full shape" \
      "end what uses it (nvidia-smi lists it), or run small models alone: ./run.sh cases"
  fi
  case "${smi[compute_mode]}" in
    Prohibited) wrong "found the GPU in compute mode Prohibited, expected Default" "nvidia-smi -i $gpu -c DEFAULT" ;;
    Exclusive*)
      jobs=1
      warnings+=("the GPU is in compute mode ${smi[compute_mode]}: cases run one by one")
      ;;
  esac
  while IFS= read -r line; do
    # Some containers know of no process, and say so.
    [[ ! "$line" =~ ^[0-9] || number -ge 3 ]] || warnings+=("another program uses the GPU: $line")
    number=$((number + 1))
  done < <(nvidia-smi -i "$gpu" --query-compute-apps=pid,process_name,used_memory --format=csv,noheader 2>/dev/null || true)
  disturbances
}

# Notes what slows the GPU down, or makes its answers doubtful.
disturbances() {
  local field text
  if [[ "${smi[utilization.gpu]}" =~ ^[0-9]+$ ]] && ((${smi[utilization.gpu]} > 5)); then
    warnings+=("the GPU is in use: ${smi[utilization.gpu]} % of the last second")
  fi
  [[ "${smi[mig.mode.current]}" != Enabled ]] || warnings+=("MIG is enabled: what runs here is a part of the GPU")
  text="${smi[ecc.errors.uncorrected.volatile.total]}"
  [[ ! "$text" =~ ^[1-9] ]] || warnings+=("found $text uncorrected errors of memory since the driver was loaded: tokens may be wrong")
  if [[ "${smi[power.limit]}" != "${smi[power.default_limit]}" ]]; then
    warnings+=("the power limit is ${smi[power.limit]} W, by default ${smi[power.default_limit]} W")
  fi
  for field in "${fields[@]}"; do
    [[ "$field" != clocks_* || "${smi[$field]}" != Active ]] || warnings+=("clocks are held down: ${field#*.}")
  done
  text="$(dmesg 2>/dev/null | grep -o 'NVRM: Xid.*' | tail -n 1 || true)"
  [[ -z "$text" ]] || warnings+=("the kernel's log has an error of a GPU: ${text#NVRM: }")
}

# Looks for what a copy of the folder may have lost, and for room.
look_at_folder() {
  local file free place="${MLXCEL_GPU_WEIGHTS:-$scratch}"
  for file in mlxcel-run mlxcel-bench random-weights; do
    [[ -x "$file" ]] || wrong "found no executable $file, expected one beside run.sh" "chmod +x mlxcel-run mlxcel-bench random-weights, or copy the folder again"
  done
  [[ -s cases.txt && -d bundles ]] || wrong "found no cases.txt or no bundles beside run.sh, expected both" "copy the folder again"
  free="$(df -Pk "$place" 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d' ' -f4)"
  [[ "$free" =~ ^[0-9]+$ ]] || return 0
  fact disk "$((free / 1024)) MiB are free in $place"
  if [[ "$needs_weights" == yes && ! -d "$place/@MODEL@-$seed" ]] && ((free / 1024 < @DISK_MIB@)); then
    wrong "found $((free / 1024)) MiB free in $place, expected @DISK_MIB@ for the weights of full shape" \
      "name another folder: MLXCEL_GPU_WEIGHTS=FOLDER ./run.sh"
  fi
}

# Generates a token: whatever else is wrong with programs, driver and GPU shows.
try_a_token() {
  local bundle prompt start=$SECONDS text hint
  if ! ./mlxcel-run --version >/dev/null 2>"$out.stderr"; then
    wrong "mlxcel-run does not start ($(head -n 1 "$out.stderr")): found $(glibc), expected glibc 2.34 or newer" \
      "pack the folder on an older system"
    return
  fi
  while read -r bundle prompt _; do
    is_left_out "$bundle" || break
  done <cases.txt
  # The stage of cases says that there is none for this GPU.
  [[ -n "$bundle" ]] || return 0
  if timeout --foreground -k 10 "$big" ./mlxcel-run "bundles/$bundle" --device "$device" --tokens "$prompt" -n 1 \
    --ignore-eos --json >"$out.json" 2>"$out.stderr"; then
    device_name="$(device_of "$out.json")"
    fact 'a token' "ran on ${device_name:-$device}: $((SECONDS - start)) s"
    [[ "$device_name" != *Emulator* ]] || warnings+=("this is no GPU but an emulated driver: times, speeds and ratios mean nothing")
    return
  fi
  text="$(grep -m 1 '^error: ' "$out.stderr" || head -n 1 "$out.stderr")"
  text="${text#error: }"
  hint="$(grep -m 1 '^hint: ' "$out.stderr" || true)"
  # What it says of the driver is for a machine of its user, who has no GPU.
  [[ "$text" != *libcuda* && -n "$hint" ]] || hint="$no_driver"
  wrong "found no token of bundles/$bundle on $device, expected one: ${text:-no end after $big s}" "${hint#hint: }"
}

glibc() { getconf GNU_LIBC_VERSION 2>/dev/null || echo 'another libc'; }

# device_of FILE: prints the device that an answer names
device_of() { grep -o '"device":"[^"]*"' "$1" | head -n 1 | cut -d'"' -f4 || true; }

# Prints what was found in the order of its weight. Errors go to stderr.
print_diagnosis() {
  local index text
  for index in "${!errors[@]}"; do
    printf 'error: %s\nhint: %s\n' "${errors[index]}" "${hints[index]}" | tee -a "$1" >&2
  done
  for text in "${warnings[@]}"; do
    echo "warning: $text" | tee -a "$1"
  done
  printf '%s\n' "${facts[@]}" | tee -a "$1"
  echo
}

# Says first what is wrong. Returns 1 if nothing else is worth a run.
diagnose() {
  no_driver="./mlxcel-run bundles/NAME --device $device --tokens 1 --json says more"
  needs_weights=yes
  [[ "$stage" != cases ]] || needs_weights=
  fact system "$(uname -sr), $(glibc)"
  look_at_folder
  if [[ "$device" == cuda* ]]; then
    look_at_driver
    # The GPU of a machine that rehearses takes no part.
    [[ -n "$rehearsal" ]] || look_at_gpu
  fi
  ((${#errors[@]} > 0)) || try_a_token
  print_diagnosis "$scratch/machine.txt"
  echo "{\"device\":$(json_of "${device_name:-$device}"),\"errors\":$(json_list "${errors[@]}"),\"warnings\":$(
    json_list "${warnings[@]}"
  ),\"facts\":$(json_list "${facts[@]}")}" >"$scratch/machine.json"
  ((${#errors[@]} == 0))
}
