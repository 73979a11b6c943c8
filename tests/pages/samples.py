"""Reports as commands would store them, with everything that a page can show."""

from __future__ import annotations

import copy
from typing import Any

HOSTILE = "<script>alert(1)</script>|`x`\x1b[31m"
_DIGEST = "0123456789abcdef" * 4


def check(name: str, verdict: str, **more: Any) -> dict[str, Any]:
    fields = {"title": f"what {name} is about", "summary": f"{name} was looked at", "threshold": "", "evidence": {}}
    return {"id": name, "verdict": verdict, **fields, **more}


def acceptance(rates: list[float], prompts: int = 4) -> dict[str, Any]:
    drafts = 100 * prompts
    accepted = [round(rate * drafts) for rate in rates]
    length = 1 + sum(accepted) / drafts
    return {
        "acceptance_length": length,
        "confidence_interval": {"low": length - 0.1, "high": length + 0.1, "unit": "prompt"},
        "acceptance_rate": sum(accepted) / (drafts * len(rates)),
        "num_drafts": drafts,
        "num_draft_tokens": drafts * len(rates),
        "num_accepted_tokens": sum(accepted),
        "per_position_acceptance_rates": [count / drafts for count in accepted],
        "conditional_acceptance_rates": [0.5] * len(rates),
        "per_prompt": [{"num_drafts": 100, "num_accepted_tokens": sum(accepted) // prompts}] * prompts,
    }


def suite(name: str, rates: list[float], ratio: float | None = None) -> dict[str, Any]:
    half_width = None if ratio is None else 0.05
    compared = {"acceptance": acceptance(rates), "difference": 0.0, "half_width": 0.02}
    measured = {"acceptance": acceptance(rates), "ratio": ratio, "ratio_half_width": half_width, "compared": compared}
    return {"suite": name, "prompt_tokens": 100.0, **measured}


def level(concurrency: int, alone: float, drafted: float) -> dict[str, Any]:
    def pace(rate: float) -> dict[str, Any]:
        quantiles = {"median": 1 / rate, "p90": 1.5 / rate}
        return {
            "tokens_per_second_per_user": rate,
            "tokens_per_second": rate * concurrency,
            "first_token_s": quantiles,
            "inter_token_s": quantiles,
        }

    ratio = drafted / alone
    return {
        "concurrency": concurrency,
        "requests": 8,
        "output_tokens": 768,
        "target": pace(alone),
        "drafter": pace(drafted),
        "speedup": {"value": ratio, "low": ratio - 0.1, "high": ratio + 0.1},
    }


def drafter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "revision": None,
        "digest": _DIGEST,
        "config": {"architectures": ["LlamaForCausalLM"], "fc_norm": True, "norm_output": True},
        "tensors": [{"name": "fc.weight", "dtype": "BF16", "shape": [64, 192], "sha256": _DIGEST}],
    }


_VERIFICATION = {
    "schema_version": 1,
    "kind": "verify",
    "eaglehub": "0.1.0",
    "verdict": "fail",
    "checks": [
        check("engine.drafter", "pass"),
        check("lossless.batch", "fail", threshold="the same tokens", evidence={"fix": "a newer vLLM"}),
        check("lossless.sampling", "warn", summary="not run: a fault of this vLLM"),
        check(
            "diagnosis.cause",
            "fail",
            summary="with layer ids one down it drafts better",
            evidence={
                "readings": [
                    {"name": "as declared", "probability": 0.2},
                    {"name": "rows of q_proj and k_proj that were interleaved", "probability": 0.1},
                    {"name": "layer ids [2, 15, 27]", "probability": 0.7},
                ]
            },
        ),
        check("speculating.baseline", "skipped", summary="no --baseline is given that measured it"),
    ],
    "acceptance": acceptance([0.75, 0.5, 0.25]),
    "compared_acceptance": acceptance([0.5, 0.25, 0.05]),
    "robust": [
        suite("plain", [0.75, 0.5, 0.25]),
        suite("no_template", [0.5, 0.25, 0.0], 0.7),
        suite("odd_system", [0.6, 0.3, 0.1], 0.8),
        suite("long-512", [0.7, 0.4, 0.2], 0.92),
        suite("long-2048", [0.5, 0.2, 0.1], 0.72),
    ],
    "fast": [level(1, 157.5, 320.0), level(4, 125.6, 214.6), level(16, 79.6, 132.1)],
    "drafter": drafter(HOSTILE),
    "compared": drafter("other"),
    "target": {
        "name": "org/target",
        "revision": "f" * 40,
        "architectures": ["LlamaForCausalLM"],
        "files": [{"name": "config.json", "sha256": _DIGEST}],
        "weights": [],
    },
    "prompts": {
        "digest": _DIGEST,
        "count": 4,
        "left_out": 0,
        "max_tokens": 96,
        "categories": ["chat", "code", "chat", "multilingual"],
    },
    "config": {
        "num_speculative_tokens": 3,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "distributed_executor_backend": None,
        "dtype": "auto",
        "max_model_len": None,
        "gpu_memory_utilization": None,
        "attention_backend": None,
        "trust_remote_code": False,
        "seed": 0,
        "extra": [],
        "runner": "auto",
        "timeout_s": 1800.0,
    },
    "engine": {
        "vllm": "0.32.0",
        "torch": "2.13.0",
        "python": "3.12.1",
        "platform": "cuda",
        "devices": ["GPU"],
        "runner": "v2",
        "dtype": "bfloat16",
        "max_model_len": 4096,
        "max_num_batched_tokens": 1024,
        "chunked_prefill": True,
        "prefix_caching": True,
        "block_size": 16,
    },
    "hardware": {
        "cpu": "A Processor",
        "architecture": "x86_64",
        "cores": 2,
        "memory_mib": 1024,
        "gpus": [{"vendor": "NVIDIA", "name": "A GPU", "memory_mib": 1024, "driver": "1.2"}],
        "notes": [],
    },
    "time": {"total_s": 100.0, "vllm_s": 90.0, "runs": []},
}


def verification() -> dict[str, Any]:
    """A failed verification with every section, of a drafter with a hostile name."""
    return copy.deepcopy(_VERIFICATION)


def score(rates: list[float]) -> dict[str, Any]:
    """Of an offline evaluation."""
    counted = acceptance(rates)
    del counted["per_prompt"]
    return counted | {"every_position": dict(counted), "state_rms": [1.0, 2.0]}


def _side(name: str, rates: list[float]) -> dict[str, Any]:
    scored = score(rates)
    drift = {"sink_mass": [0.0], "recent_mass": [0.1], "attention_entropy": [1.0], "state_rms": scored.pop("state_rms")}
    flags = dict.fromkeys(("fc_norm", "norm_output", "norm_before_fc", "norm_before_residual"), False)
    suites = {"plain": {"prompts": 4, **scored, "drift": drift}}
    return {"name": name, "revision": None, "digest": _DIGEST, "format": "vllm", "flags": flags, "suites": suites}


def _ratio(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


def evaluation() -> dict[str, Any]:
    """Of two drafters."""
    return {
        "schema_version": 1,
        "kind": "evaluate",
        "eaglehub": "0.1.0",
        "target": "org/target",
        "target_revision": None,
        "num_speculative_tokens": 2,
        "max_tokens": 24,
        "drafter": _side("old", [0.5, 0.25]),
        "compare": _side("new", [0.75, 0.5]),
        "ratio": {"plain": _ratio(1.3)},
    }


def upgrading() -> dict[str, Any]:
    """That was measured."""
    return {
        "schema_version": 1,
        "kind": "upgrade",
        "eaglehub": "0.1.0",
        "source": {"name": "old", "revision": None, "format": "vllm"},
        "status": "upgraded",
        "output": "new",
        "findings": [{"code": "EH207", "severity": "note", "message": "a RoPE base", "where": "rope_theta"}],
        "features_bytes": 100,
        "tensors": [{"name": "norm.weight", "operation": "new", "dtype": "F32", "shape": [64]}],
        "config_edits": [{"key": "fc_norm", "reason": "upgraded: a norm", "before": False, "after": True}],
        "upgrade": {
            "fc_norm": True,
            "norm_output": False,
            "fc_init": "calibrated",
            "feedback_gain": None,
            "gain_search": None,
            "head_rounding_error": None,
            "head_bytes_added": 0,
            "aux_scales": None,
            "statements": [{"exact": False, "what": "fc_norm: only its length differs"}],
            "needs_training": False,
            "num_speculative_tokens": 2,
            "measured": {"source": score([0.5, 0.25]), "upgraded": score([0.5, 0.25])},
            "ratio": _ratio(1.0),
        },
    }


TRAINING = {
    "trainable": "norms",
    "ttt_steps": 3,
    "rate": 1e-4,
    "batch_tokens": 1024,
    "epochs": 1,
    "max_steps": None,
    "warmup": 0.1,
    "clip": 1.0,
    "anchor": 0.0,
    "seed": 0,
    "dtype": "float32",
    "recompute": False,
    "evaluate_every": 10,
    "patience": 3,
}


def finetuning() -> dict[str, Any]:
    """That was worth it."""
    return {
        "schema_version": 1,
        "kind": "finetune",
        "eaglehub": "0.1.0",
        "source": {"name": "old", "revision": None, "format": "vllm"},
        "output": "new",
        "finetune": {
            "tensors": ["fc_norm.0.weight"],
            "settings": TRAINING,
            "data": {
                "conversations": 10,
                "digest": _DIGEST,
                "held_out_conversations": 4,
                "held_out_digest": _DIGEST,
                "augment": [],
                "tokens": 1000,
                "longest_tokens": 100,
            },
            "num_speculative_tokens": 2,
            "steps": 20,
            "best_step": 10,
            "kept": True,
            "curve": [{"step": 10, "acceptance_length": 1.9, "per_position": [0.6, 0.3]}],
            "before": score([0.5, 0.25]),
            "after": score([0.6, 0.3]),
            "ratio": _ratio(1.09),
        },
    }
