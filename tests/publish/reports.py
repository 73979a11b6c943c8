"""Reports and records as the other commands leave them beside a drafter, with figures that tell them apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import open_checkpoint
from eaglehub.checkpoint.hashing import folder_digest
from tests.pages.samples import TRAINING

if TYPE_CHECKING:
    from pathlib import Path


def acceptance(length: float) -> dict[str, Any]:
    rates = [round((length - 1) * share, 3) for share in (0.6, 0.3, 0.1)]
    return {
        "acceptance_length": length,
        "confidence_interval": {"low": length - 0.1, "high": length + 0.1, "unit": "prompt"},
        "acceptance_rate": (length - 1) / 3,
        "num_drafts": 100,
        "num_draft_tokens": 300,
        "num_accepted_tokens": round(100 * (length - 1)),
        "per_position_acceptance_rates": rates,
        "conditional_acceptance_rates": [0.5, 0.5, None],
    }


def score(length: float) -> dict[str, Any]:
    return {**acceptance(length), "every_position": acceptance(length), "state_rms": [1.0, 1.0, 1.0]}


def evaluation(drafter: Path) -> dict[str, Any]:
    """What `eaglehub evaluate --compare` reports of it."""
    drift = {name: [1.0, 1.0] for name in ("state_rms", "sink_mass", "recent_mass", "attention_entropy")}
    suites = {
        name: {"prompts": 4, **acceptance(length), "every_position": acceptance(length), "drift": drift}
        for name, length in (("plain", 2.111), ("long", 1.777))
    }
    side = {
        "name": "drafter",
        "revision": None,
        "digest": folder_digest(open_checkpoint(drafter).hash_files()),
        "format": "vllm",
        "flags": dict.fromkeys(("fc_norm", "norm_output", "norm_before_fc", "norm_before_residual"), False),
        "suites": suites,
    }
    ratio = {name: {"value": 1.0, "low": 0.9, "high": 1.1} for name in suites}
    return {
        "schema_version": 1,
        "kind": "evaluate",
        "eaglehub": "0.1.0",
        "target": "target",
        "target_revision": None,
        "num_speculative_tokens": 3,
        "max_tokens": 32,
        "drafter": side,
        "compare": side | {"name": "source"},
        "ratio": ratio,
    }


def robust() -> list[dict[str, Any]]:
    """What `eaglehub verify` reports of the robust family."""
    tokens = {"plain": 30, "long-512": 400, "long-1024": 900, "no_bos": 29, "odd_system": 60}
    return [
        {
            "suite": suite,
            "prompt_tokens": count,
            "acceptance": {**acceptance(2.5 - place / 10), "per_prompt": []},
            "ratio": None if suite == "plain" else 1 - place / 25,
            "ratio_half_width": None if suite == "plain" else 0.05,
            "compared": {"acceptance": {**acceptance(2.4), "per_prompt": []}, "difference": 0.1, "half_width": 0.02},
        }
        for place, (suite, count) in enumerate(tokens.items())
    ]


UPGRADE = {
    "fc_norm": True,
    "norm_output": True,
    "fc_init": "calibrated",
    "feedback_gain": 1.5,
    "gain_search": None,
    "head_rounding_error": 0.001,
    "head_bytes_added": 0,
    "aux_scales": None,
    "statements": [{"exact": True, "what": "the logits are unchanged"}],
    "needs_training": False,
    "num_speculative_tokens": 3,
    "measured": {"source": score(1.601), "upgraded": score(1.599)},
    "ratio": {"value": 0.999, "low": 0.98, "high": 1.01},
}

FINETUNE = {
    "tensors": ["norm.weight"],
    "settings": TRAINING,
    "data": {
        "conversations": 321,
        "digest": "ab" * 32,
        "held_out_conversations": 20,
        "held_out_digest": "cd" * 32,
        "augment": [],
        "tokens": 45678,
        "longest_tokens": 987,
    },
    "num_speculative_tokens": 3,
    "steps": 12,
    "best_step": 10,
    "kept": True,
    "curve": [{"step": 0, "acceptance_length": 1.5, "per_position": [0.5]}],
    "before": score(1.654),
    "after": score(1.765),
    "ratio": {"value": 1.07, "low": 1.01, "high": 1.1},
}


def extend(file: Path, **fields: Any) -> None:
    """Add fields to a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
