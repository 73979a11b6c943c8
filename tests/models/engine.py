"""Runs one vLLM engine and notes every draft: `python engine.py REQUEST.json RESULT.json`, in its own process.

The request names the folders `target` and `drafter`, `prompts` (token ids), `noted`, `max_tokens`, `draft_tokens` and
`engine` (further arguments). Answers go on to `max_tokens` whatever token ends one. The result holds, for each of the
first `noted` prompts, run one by one, `tokens` (generated) and `drafts` (one list of token ids each time the drafter
was asked); and of all prompts, run together, vLLM's counters `num_drafts` and `accepted` by position.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

DRAFTS: list[list[int]] = []


def run(request: dict[str, Any]) -> dict[str, Any]:
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
        kv_cache_memory_bytes=256 * 1024**2,
        enable_prefix_caching=False,
        disable_log_stats=False,
        seed=0,
        **request["engine"],
    )
    llm.collective_rpc(_note_drafts)
    sampling = SamplingParams(temperature=0.0, max_tokens=request["max_tokens"], ignore_eos=True)
    noted = []
    for tokens in request["prompts"][: request["noted"]]:
        DRAFTS.clear()
        (output,) = llm.generate([{"prompt_token_ids": tokens}], sampling, use_tqdm=False)
        noted.append({"tokens": list(output.outputs[0].token_ids), "drafts": list(DRAFTS)})
    before = _counters(llm)
    llm.generate([{"prompt_token_ids": tokens} for tokens in request["prompts"]], sampling, use_tqdm=False)
    drafts, *accepted = (after - earlier for after, earlier in zip(_counters(llm), before, strict=True))
    return {"noted": noted, "num_drafts": drafts, "accepted": accepted}


def _counters(llm: Any) -> list[int]:
    found = {metric.name.removeprefix("vllm:spec_decode_num_"): metric for metric in llm.get_metrics()}
    return [found["drafts"].value, *found["accepted_tokens_per_pos"].values]


def _note_drafts(worker: Any) -> None:
    runner = worker.model_runner
    propose = runner.propose_draft_token_ids

    def noting(*args: Any, **kwargs: Any) -> Any:
        drafted = propose(*args, **kwargs)
        DRAFTS.extend(drafted.tolist() if hasattr(drafted, "tolist") else drafted)
        return drafted

    runner.propose_draft_token_ids = noting


if __name__ == "__main__":
    request_file, result_file = map(Path, sys.argv[1:])
    result_file.write_text(json.dumps(run(json.loads(request_file.read_text(encoding="utf-8")))), encoding="utf-8")
