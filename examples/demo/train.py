"""Train a tiny target and a tiny EAGLE-3 drafter for it, as SpecForge exports one: `train.py FOLDER`.

FOLDER gets `target`, `drafter` and `prompts.jsonl`. It takes about a minute on one core.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.tiny.corpus import question
from examples.tiny.drafters import AUX_IDS, Drafter, Kind, make_drafter
from examples.tiny.targets import make_target, make_tokenizer, save_target

_TARGET_STEPS, _DRAFTER_STEPS, _PROMPTS = 150, 60, 240
_KIND = Kind("llama")


def main(folder: Path) -> None:
    """Write everything, whole or not at all."""
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    tokenizer = make_tokenizer()
    target = make_target(_KIND.name, tokenizer, _TARGET_STEPS)
    save_target(target, tokenizer, unfinished / "target")
    drafter, kept = make_drafter(_KIND, target, tokenizer, _DRAFTER_STEPS)
    save_as_specforge(drafter, kept, len(tokenizer), unfinished / "drafter")
    rng = random.Random(7)
    prompts = [{"messages": [{"role": "user", "content": question(rng)}]} for _ in range(_PROMPTS)]
    (unfinished / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    unfinished.rename(folder)


def save_as_specforge(drafter: Drafter, kept: torch.Tensor, vocab: int, folder: Path) -> None:
    """Its layer is called `midlayer`, and it counts what layers put out, where vLLM counts what they take in."""
    folder.mkdir(parents=True)
    tensors: dict[str, Any] = {
        name.replace("layers.0.", "midlayer."): tensor.contiguous() for name, tensor in drafter.state_dict().items()
    }
    tensors["d2t"] = kept - torch.arange(len(kept))
    tensors["t2d"] = torch.isin(torch.arange(vocab), kept)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    ids = [number - 1 for number in AUX_IDS]
    config = drafter.kind.config(vocab) | {
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": ids, "use_aux_hidden_state": True}
    }
    unknown = ("eagle_aux_hidden_state_layer_ids", "num_aux_hidden_states", "fc_norm", "norm_output", "norm_before_fc")
    config = {key: value for key, value in config.items() if key not in unknown}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)  # as fast as more for matrices of this size, and much faster on a busy machine
    main(Path(sys.argv[1]))
