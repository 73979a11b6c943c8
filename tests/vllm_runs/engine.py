"""Runs one vLLM engine with a drafter and reports what it did.

A script, executed in a process of its own: `python engine.py REQUEST.json RESULT.json`. vLLM keeps global state and
can leave children behind, so the tests never import it themselves.

The request names the folders `target` and `drafter`, `prompts` (user messages), `max_tokens` and `draft_tokens`. The
result holds

- `tokens`: for each prompt the generated token ids;
- `drafts`: how many times the drafter was asked;
- `accepted`: for each draft position how many of its tokens were kept;
- `aux_layers`: the layers whose input the target model hands to the drafter;
- `runner`: `V1` or `V2`, the model runner vLLM used;
- `v2_reads`: the layers the V2 runner finds in the drafter's config, null when it would fall back to its default. V2
  needs a GPU, its reader does not.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

# The engine in this very process: the model can be looked into, and one kill ends everything.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

_KV_CACHE_BYTES = 256 * 1024**2


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Load, generate greedily, collect the counters."""
    from vllm import LLM, SamplingParams

    llm = LLM(
        model=request["target"],
        speculative_config={
            "method": "eagle3",
            "model": request["drafter"],
            "num_speculative_tokens": request["draft_tokens"],
        },
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        kv_cache_memory_bytes=_KV_CACHE_BYTES,
        enable_prefix_caching=False,
        disable_log_stats=False,
        seed=0,
    )
    conversations: list[Any] = [[{"role": "user", "content": prompt}] for prompt in request["prompts"]]
    sampling = SamplingParams(temperature=0.0, max_tokens=request["max_tokens"])
    outputs = llm.chat(conversations, sampling, use_tqdm=False)
    (inside,) = llm.collective_rpc(_look_inside)
    return {
        "tokens": [list(output.outputs[0].token_ids) for output in outputs],
        **_counters(llm.get_metrics()),
        **inside,
    }


def _look_inside(worker: Any) -> dict[str, Any]:
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import get_eagle3_aux_layers_from_config

    return {
        "aux_layers": list(worker.get_model().model.aux_hidden_state_layers),
        "runner": "V2" if worker.use_v2_model_runner else "V1",
        "v2_reads": get_eagle3_aux_layers_from_config(worker.vllm_config.speculative_config),
    }


def _counters(metrics: list[Any]) -> dict[str, Any]:
    found = {metric.name.removeprefix("vllm:spec_decode_num_"): metric for metric in metrics}
    return {"drafts": int(found["drafts"].value), "accepted": list(found["accepted_tokens_per_pos"].values)}


if __name__ == "__main__":
    request_file, result_file = map(Path, sys.argv[1:])
    result = run(json.loads(request_file.read_text(encoding="utf-8")))
    result_file.write_text(json.dumps(result), encoding="utf-8")
