"""Runs a target in vLLM and hands its states out; the only module of features/ that imports vLLM, in its own process.

`python worker.py REQUEST.json`. It needs vLLM and the standard library only. Its standard input is a lifeline: when
that closes, the process group ends.

The request has `engine` (arguments of `vllm.LLM`), `cpu_engine` (those that count only on a CPU), `layer_ids`,
`num_layers`, `folder` and `shards`: lists of samples with `tokens` and `count`, how many tokens to add greedily,
whatever token ends an answer. For each shard a file `NUMBER.safetensors` appears in the folder, whole: for each
sample `I.tokens`, all of them, `I.aux` and `I.head_input` at all tokens but the last.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

CONNECTOR = "FeaturesConnector"
_STEPS, _PAUSE_S = 1000, 0.01


def main() -> None:
    """Read the request, make its shards; an error is left in `error` beside them."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(request["folder"])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        llm = _start(request, folder)
        for number, samples in enumerate(request["shards"]):
            _make_shard(llm, samples, len(request["layer_ids"]), folder / f"{number}.safetensors")
    except Exception as error:  # noqa: BLE001 - whatever vLLM raises is a result
        (folder / "error").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        os._exit(1)
    os._exit(0)  # tearing an engine down takes seconds, and its children go with the process group


def _start(request: dict[str, Any], folder: Path) -> Any:
    from vllm import LLM
    from vllm.platforms import current_platform

    # vLLM's own drafter config is the target's with the ids added; the last state is what leaves the last layer.
    speculative = {
        "method": "extract_hidden_states",
        "num_speculative_tokens": 1,
        "draft_model_config": {
            "hf_config": {"eagle_aux_hidden_state_layer_ids": [*request["layer_ids"], request["num_layers"]]}
        },
    }
    transfer = {
        "kv_connector": CONNECTOR,
        "kv_connector_module_path": "eaglehub_vllm_connector",
        "kv_role": "kv_producer",
        "kv_connector_extra_config": {"shared_storage_path": str(folder / "states")},
    }
    on_cpu = request["cpu_engine"] if current_platform.is_cpu() else {}
    return LLM(
        speculative_config=speculative,
        kv_transfer_config=transfer,
        enable_prefix_caching=False,
        **(on_cpu | request["engine"]),
    )


def _make_shard(llm: Any, samples: list[dict[str, Any]], states: int, file: Path) -> None:
    from safetensors.torch import save_file
    from vllm import SamplingParams

    outputs = llm.generate(
        [{"prompt_token_ids": sample["tokens"]} for sample in samples],
        [
            SamplingParams(
                temperature=0.0,
                ignore_eos=True,
                max_tokens=max(sample["count"], 1),
                extra_args={"kv_transfer_params": {"include_output_tokens": True}},
            )
            for sample in samples
        ],
        use_tqdm=False,
    )
    _flush(llm, outputs)
    tensors: dict[str, Any] = {}
    for index, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
        added = list(output.outputs[0].token_ids)[: sample["count"]]
        tensors |= _tensors(llm, index, [*sample["tokens"], *added], states, output)
    draft = file.with_suffix(".draft")
    save_file(tensors, draft)
    draft.replace(file)


def _flush(llm: Any, outputs: list[Any]) -> None:
    """Let the engine write the states of the requests that ended last; it does so in a step that is not due."""
    for _ in range(_STEPS):
        if all(Path(output.kv_transfer_params["hidden_states_path"]).exists() for output in outputs):
            return
        llm.llm_engine.step()
        time.sleep(_PAUSE_S)
    raise RuntimeError("vLLM did not write the hidden states of every prompt")


def _tensors(llm: Any, index: int, tokens: list[int], states: int, output: Any) -> dict[str, Any]:
    import torch
    from vllm.distributed.kv_transfer.kv_connector.v1.example_hidden_states_connector import (
        cleanup_hidden_states,
        load_hidden_states,
    )

    path = output.kv_transfer_params["hidden_states_path"]
    loaded = load_hidden_states(path)
    cleanup_hidden_states(path)
    whole = loaded["hidden_states"][: len(tokens) - 1]
    (normed, *_) = llm.apply_model(functools.partial(_final_norm, whole[:, states].clone()))
    return {
        f"{index}.tokens": torch.tensor(tokens),
        f"{index}.aux": whole[:, :states].flatten(1).contiguous(),
        f"{index}.head_input": normed.contiguous(),
    }


def _final_norm(states: Any, model: Any) -> Any:
    """The target's own final norm: what lm_head reads is after it."""
    language = model.get_language_model() if hasattr(model, "get_language_model") else model
    weight = language.model.norm.weight
    return language.model.norm(states.to(weight.device, weight.dtype)).cpu()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    if os.getpgid(0) == os.getpid():  # not when a person runs this file in a shell's group
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
