#!/usr/bin/env bash
# The main job on a small drafter made on the spot: look at it, see the plan, convert it, compare.
set -euo pipefail
cd "$(dirname "$0")"

out=${1:-$(mktemp -d)}
run() { printf '\n$ %s\n' "$*"; "$@"; }

python build_drafter.py "$out/drafter"
cd "$out"
run eaglehub inspect drafter
run eaglehub convert drafter drafter-vllm --dry-run
run eaglehub convert drafter drafter-vllm --force
run eaglehub convert drafter-vllm --check
run eaglehub diff drafter drafter-vllm || [ $? -eq 1 ]

printf '\nThe converted drafter is in %s\n' "$out/drafter-vllm"
