"""A random target, a drafter for it that has all to learn, and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tests.models.tiny_target import VOCAB, fitting, write_drafter, write_prompts, write_target

if TYPE_CHECKING:
    from pathlib import Path

# Whatever is drafted can be right: the target is as random as the drafter, and any of its tokens may come.
WHOLE = {"draft_vocab_size": VOCAB, "fc_norm": True, "norm_output": True}


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random target's folder; it is sure of what it says."""
    return write_target(tmp_path_factory.mktemp("finetune") / "target", initializer_range=0.6)


@pytest.fixture(scope="session")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of six questions."""
    return write_prompts(tmp_path_factory.mktemp("finetune") / "prompts.jsonl")


@pytest.fixture(scope="session")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A 3.1 drafter of each architecture, in bfloat16."""
    folder = tmp_path_factory.mktemp("finetune-drafters")
    return {
        architecture: write_drafter(folder / architecture, fitting(architecture, **WHOLE), torch.bfloat16)
        for architecture in ("llama", "qwen3", "mla")
    }


@pytest.fixture(scope="session")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the target's states are kept, so that it runs once."""
    return tmp_path_factory.mktemp("finetune-features")
