#!/usr/bin/env bash
# The whole chain on a tiny target and a tiny EAGLE-3 drafter, trained on the spot: run.sh [FOLDER].
# Run again, it does what is not done yet.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-demo}
export HF_HUB_OFFLINE=1
# More threads than this only wait for one another with matrices of this size.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export VLLM_CPU_OMP_THREADS_BIND=${VLLM_CPU_OMP_THREADS_BIND:-nobind}

mkdir -p "$out"
if [ ! -d "$out/models" ]; then
    echo "training a tiny target and a drafter for it (about a minute)"
    python "$here/train.py" "$out/models" 2>/dev/null
fi
eaglehub inspect "$out/models/drafter"
cp "$here/recipe.yaml" "$out/recipe.yaml"
eaglehub run "$out/recipe.yaml" --output json="$out/run.json"

drafter=$out/work/drafter/finetune/drafter
eaglehub report "$drafter/eaglehub-verify.json" --output html="$out/report.html"
eaglehub card "$drafter" --name tiny-eagle3.1 --base-model example/tiny --license apache-2.0 --write

cat <<END

The drafter          $drafter
Its report page      $out/report.html
Its model card       $drafter/README.md
All steps' reports   $out/run.json
END
