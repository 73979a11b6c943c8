"""The canonical description of a drafter, in vLLM's EAGLE 3.1 terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# What the semantics of a drafter turn on, and checkpoints are least clear about.
FLAGS = ("fc_norm", "norm_output", "norm_before_fc", "norm_before_residual")
# Config keys that only MLA drafters have; they are copied as they stand.
MLA_KEYS = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What a drafter is, whoever wrote it.

    Attributes:
        architecture: `llama`, `qwen3` (q/k norms) or `mla` (multi-head latent attention).
        hidden_size: width H of the drafter.
        target_hidden_size: width Ht of the target's hidden states.
        vocab_size: the target's vocabulary size V.
        draft_vocab_size: rows Vd of the draft head; V when the vocabulary is not pruned.
        num_hidden_layers: draft layers N.
        num_aux_hidden_states: aux states A that `fc` reads, [H, A * Ht]; 0 without `fc`.
        aux_layer_ids: which target states, ascending, in the IN convention (id k is what enters layer k); None when the
            checkpoint does not say and the engine's default applies.
        fc_norm: an RMSNorm on each aux state before `fc`.
        norm_before_fc: one RMSNorm (`input_norm`) over the concatenated aux states.
        norm_output: the post-norm state is fed into the next draft step (EAGLE 3.1) instead of the pre-norm one.
        norm_before_residual: the residual is taken after `hidden_norm`.
        head_dim: None for MLA.
        rope_scaling: None for plain RoPE.
        embedding: whether the file has its own `embed_tokens`; else the engine shares the target's.
        head: whether the file has its own `lm_head`; else the engine shares the target's.
        mask_token_id: the token that stands for unknown ones in parallel drafting (P-EAGLE).
        parallel_drafting: whether there is a `mask_hidden`.
        quantized: whether there are scale tensors beside weights.
        dtype: safetensors name of the weights' dtype.
        extra: every other config key, kept as it was.
    """

    architecture: str
    hidden_size: int
    target_hidden_size: int
    vocab_size: int
    draft_vocab_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int | None
    intermediate_size: int
    hidden_act: str
    rms_norm_eps: float
    attention_bias: bool
    mlp_bias: bool
    rope_theta: float
    rope_scaling: Mapping[str, Any] | None
    max_position_embeddings: int | None
    num_aux_hidden_states: int
    aux_layer_ids: tuple[int, ...] | None
    fc_norm: bool
    norm_output: bool
    norm_before_fc: bool
    norm_before_residual: bool
    embedding: bool
    head: bool
    parallel_drafting: bool
    mask_token_id: int | None
    quantized: bool
    dtype: str
    mla: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def generation(self) -> str:
        """`3.1` when it has one of the two changes of EAGLE 3.1, else `3`."""
        return "3.1" if self.fc_norm or self.norm_output else "3"

    @property
    def pruned(self) -> bool:
        """Whether the draft vocabulary is a part of the target's, with a `d2t` map."""
        return self.draft_vocab_size != self.vocab_size

    @property
    def flags(self) -> dict[str, bool]:
        """Its `FLAGS`, by name."""
        return {name: getattr(self, name) for name in FLAGS}

    def traits(self) -> frozenset[str]:
        """What a layout may be unable to express, by the names that format specs use under `cannot`."""
        mla = self.architecture == "mla"
        conditions = {
            "qwen3": self.architecture == "qwen3",
            "mla": mla,
            "several_layers": self.num_hidden_layers > 1,
            "not_three_aux": self.num_aux_hidden_states != 3,
            "no_aux": self.num_aux_hidden_states == 0,
            "fc_norm": self.fc_norm,
            "norm_output": self.norm_output,
            "norm_before_fc": self.norm_before_fc,
            "norm_before_residual": self.norm_before_residual,
            "fc_norm_and_norm_before_fc": self.fc_norm and self.norm_before_fc,
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "own_embedding": self.embedding,
            "shared_head": not self.head,
            "not_same_width": self.target_hidden_size != self.hidden_size,
            "parallel_drafting": self.parallel_drafting,
            "quantized": self.quantized,
            "mla_norm_before_fc": mla and self.norm_before_fc,
            "mla_no_aux": mla and self.num_aux_hidden_states == 0,
            "mla_parallel_drafting": mla and self.parallel_drafting,
            "mla_several_layers": mla and self.num_hidden_layers > 1,
            "mla_plain_q": mla and self.mla.get("q_lora_rank") is None,
        }
        return frozenset(name for name, holds in conditions.items() if holds)
