"""Runs one vLLM engine with a drafter and reports what it did.

A script, executed in a process of its own: `python engine.py REQUEST.json RESULT.json`. vLLM keeps global state and
can leave children behind, so the tests never import it themselves; `process.py` runs it.

The request names the folders `target` and `drafter`, `prompts` (user messages, or token ids), `max_tokens` and
`draft_tokens`; `noted` is how many of the prompts are first run one by one to note their drafts, with `ignore_eos`
answers go on to `max_tokens` whatever token ends one, and `engine` holds further arguments. The result holds, of all
prompts run together,

- `tokens`: for each prompt the generated token ids;
- `drafts`: how many times the drafter was asked;
- `accepted`: for each draft position how many of its tokens were kept;

of the drafter's place in the engine

- `aux_layers`: the layers whose input the target model hands to the drafter;
- `runner`: `V1` or `V2`, the model runner vLLM used;
- `v2_reads`: the layers the V2 runner finds in the drafter's config, null when it would fall back to its default. V2
  needs a GPU, its reader does not;

and as `noted`, for each of the first prompts, `tokens` (generated) and `drafts` (one list of token ids each time the
drafter was asked).
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
DRAFTS: list[list[int]] = []


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
        **request["engine"],
    )
    sampling = SamplingParams(temperature=0.0, max_tokens=request["max_tokens"], ignore_eos=request["ignore_eos"])
    noted = _note(llm, request["prompts"][: request["noted"]], sampling)
    drafts, *accepted = _counters(llm) if noted else [0] * (1 + request["draft_tokens"])
    tokens = _generate(llm, request["prompts"], sampling)
    drafts_after, *accepted_after = _counters(llm)
    (inside,) = llm.collective_rpc(_look_inside)
    return {
        "tokens": tokens,
        "drafts": drafts_after - drafts,
        "accepted": [after - before for after, before in zip(accepted_after, accepted, strict=True)],
        "noted": noted,
        **inside,
    }


def _generate(llm: Any, prompts: list[Any], sampling: Any) -> list[list[int]]:
    if isinstance(prompts[0], str):
        conversations: list[Any] = [[{"role": "user", "content": prompt}] for prompt in prompts]
        outputs = llm.chat(conversations, sampling, use_tqdm=False)
    else:
        outputs = llm.generate([{"prompt_token_ids": tokens} for tokens in prompts], sampling, use_tqdm=False)
    return [list(output.outputs[0].token_ids) for output in outputs]


def _note(llm: Any, prompts: list[Any], sampling: Any) -> list[dict[str, Any]]:
    if prompts:
        llm.collective_rpc(_note_drafts)
    noted = []
    for prompt in prompts:
        DRAFTS.clear()
        (tokens,) = _generate(llm, [prompt], sampling)
        noted.append({"tokens": tokens, "drafts": list(DRAFTS)})
    return noted


def _note_drafts(worker: Any) -> None:
    runner = worker.model_runner
    propose = runner.propose_draft_token_ids

    def noting(*args: Any, **kwargs: Any) -> Any:
        drafted = propose(*args, **kwargs)
        DRAFTS.extend(drafted.tolist() if hasattr(drafted, "tolist") else drafted)
        return drafted

    runner.propose_draft_token_ids = noting


def _look_inside(worker: Any) -> dict[str, Any]:
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import get_eagle3_aux_layers_from_config

    return {
        "aux_layers": list(worker.get_model().model.aux_hidden_state_layers),
        "runner": "V2" if worker.use_v2_model_runner else "V1",
        "v2_reads": get_eagle3_aux_layers_from_config(worker.vllm_config.speculative_config),
    }


def _counters(llm: Any) -> list[int]:
    found = {metric.name.removeprefix("vllm:spec_decode_num_"): metric for metric in llm.get_metrics()}
    return [int(found["drafts"].value), *found["accepted_tokens_per_pos"].values]


if __name__ == "__main__":
    request_file, result_file = map(Path, sys.argv[1:])
    result = run(json.loads(request_file.read_text(encoding="utf-8")))
    result_file.write_text(json.dumps(result), encoding="utf-8")
