"""Small reference drafters with random weights, described as the reader describes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from eaglehub.drafter.drafter import Drafter
from eaglehub.drafter.model import DraftModel
from eaglehub.drafter.tensors import expected_tensors

_LATENT = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 12}
_PLAIN = Drafter(
    architecture="llama",
    hidden_size=64,
    target_hidden_size=64,
    vocab_size=160,
    draft_vocab_size=48,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    intermediate_size=96,
    hidden_act="silu",
    rms_norm_eps=1e-5,
    attention_bias=False,
    mlp_bias=False,
    rope_theta=10000.0,
    rope_scaling=None,
    max_position_embeddings=256,
    num_aux_hidden_states=3,
    aux_layer_ids=(2, 6, 9),
    fc_norm=False,
    norm_output=False,
    norm_before_fc=False,
    norm_before_residual=False,
    embedding=True,
    head=True,
    parallel_drafting=False,
    mask_token_id=None,
    quantized=False,
    dtype="F32",
)


def describe(architecture: str = "llama", **changes: Any) -> Drafter:
    """A description; MLA drafters get their latent sizes."""
    latent = {"mla": _LATENT, "head_dim": None, "num_key_value_heads": 4} if architecture == "mla" else {}
    return replace(_PLAIN, architecture=architecture, **(latent | changes))


def random_model(drafter: Drafter, seed: int = 0) -> DraftModel:
    """A drafter with random float32 weights; norms are around one."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, tensor in expected_tensors(drafter).items():
        noise = torch.randn(tensor.shape, generator=generator)
        tensors[name] = 1 + 0.2 * noise if "norm" in name else 0.15 * noise
    if drafter.pruned:
        ids = torch.randperm(drafter.vocab_size, generator=generator)[: drafter.draft_vocab_size].sort().values
        tensors["d2t"] = ids - torch.arange(drafter.draft_vocab_size)
    return DraftModel.load(drafter, tensors)


def random_inputs(drafter: Drafter, length: int, depth: int, batch: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """The target's states [batch, length, A * Ht], and the tokens after them [batch, length + depth]."""
    generator = torch.Generator().manual_seed(7)
    width = max(drafter.num_aux_hidden_states, 1) * drafter.target_hidden_size
    tokens = torch.randint(drafter.vocab_size, (batch, length + depth), generator=generator)
    return torch.randn(batch, length, width, generator=generator), tokens
