#!/usr/bin/env bash
# Verifies a drafter on the GPUs of this machine: on both of vLLM's model runners and, with two GPUs or more, split over
# them. Writes a report and a page a run, and prints a table.
#
#   scripts/gpu_check.sh DRAFTER TARGET [OUT [VERIFY-OPTION...]]
#
#   OUT             folder of the reports, made if there is none; gpu-check by default
#   VERIFY-OPTION   as for `eaglehub verify`, such as --prompts FILE or --python INTERPRETER
#
# Exits with 0 when every run passed, with 1 when one did not, with 2 on wrong usage, with 4 without a GPU.
set -uo pipefail

if (($# < 2)); then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
drafter=$1 target=$2 out=${3:-gpu-check}
options=("${@:4}")

if command -v nvidia-smi >/dev/null; then
    gpus=$(nvidia-smi --list-gpus | wc -l)
elif command -v rocminfo >/dev/null; then
    gpus=$(rocminfo | grep -c 'Device Type: *GPU')
else
    gpus=0
fi
if ((gpus == 0)); then
    echo "no GPU found: neither nvidia-smi nor rocminfo shows one" >&2
    exit 4
fi

runs=(v1 v2)
ways=$((gpus >= 4 ? 4 : gpus))
((ways == 3)) && ways=2
((ways > 1)) && runs+=("v2 $ways")

mkdir -p "$out" || exit 4
failed=0
table="run|exit|verdict|acceptance length|speedup at 1, 4, 16 users"
for run in "${runs[@]}"; do
    read -r runner split <<<"$run"
    name=$runner${split:+-tp$split}
    echo "== $name" >&2
    rm -f "$out/$name.json"
    eaglehub verify "$drafter" --target "$target" --runner "$runner" --tensor-parallel-size "${split:-1}" --fast \
        --no-write --output "json=$out/$name.json" --output "html=$out/$name.html" "${options[@]}"
    code=$?
    ((code)) && failed=1
    table+=$'\n'"$name|$code|$(python3 - "$out/$name.json" <<'PYTHON'
import json, sys
from pathlib import Path

file = Path(sys.argv[1])
report = json.loads(file.read_text()) if file.exists() else {}
length = (report.get("acceptance") or {}).get("acceptance_length")
speedups = [f"{level['speedup']['value']:.2f}" for level in report.get("fast") or []]
print(report.get("verdict", "none"), f"{length:.3f}" if length else "-", ", ".join(speedups) or "-", sep="|")
PYTHON
    )"
done

column -t -s '|' <<<"$table"
echo "reports and pages: $out" >&2
exit "$failed"
