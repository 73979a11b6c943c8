"""Train and write one kind: `python -m examples.tiny.train KIND FOLDER`, in a process of its own."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import torch

from .corpus import question
from .drafters import Kind, make_drafter, save_drafter
from .targets import make_target, make_tokenizer, save_target

_TARGET_STEPS, _DRAFTER_STEPS, _PROMPTS = 150, 80, 24


def train(kind: str, folder: Path) -> None:
    """Write `target`, `drafter`, for llama also `drafter-3.1`, and `prompts.jsonl` of the kind that it can answer."""
    tokenizer = make_tokenizer()
    target = make_target(kind, tokenizer, _TARGET_STEPS)
    save_target(target, tokenizer, folder / "target")
    generations = {"drafter": False} | ({"drafter-3.1": True} if kind == "llama" else {})
    for name, is_3_1 in generations.items():
        drafter, kept = make_drafter(Kind(kind, is_3_1), target, tokenizer, _DRAFTER_STEPS)
        save_drafter(drafter, kept, len(tokenizer), folder / name)
    rng = random.Random(99)
    prompts = [{"messages": [{"role": "user", "content": question(rng)}]} for _ in range(_PROMPTS)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)  # as fast as more for matrices of this size, and much faster on a busy machine
    train(sys.argv[1], Path(sys.argv[2]))
