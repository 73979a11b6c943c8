"""The reference drafter in torch: what an engine computes, step by step, and the same for all positions at once.

Shapes: B batch, T positions, S slots (the positions that drafts start from), H hidden, A * Ht aux states side by side,
Vd draft vocabulary. Slot t holds the target's states at position t and the token that follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from eaglehub.drafter.memory import CausalMemory, ChainMemory, Packing
from eaglehub.drafter.rotary import paired, rotary_embedding, rotate, yarn_scale
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.memory import Memory, Watch


class Step(NamedTuple):
    """One draft step.

    Attributes:
        logits: over the draft vocabulary, [B, S, Vd].
        state: what the next step starts from, [B, S, H].
        before_norm: the state before the final norm, [B, S, H]; the same as `state` unless `norm_output` is on.
    """

    logits: Tensor
    state: Tensor
    before_norm: Tensor


class DraftModel(nn.Module):
    """A drafter; its parameters have the canonical tensor names. Made by `DraftModel.load`."""

    d2t: Tensor

    def __init__(self, drafter: Drafter) -> None:
        super().__init__()
        self.drafter = drafter
        width, eps = drafter.num_aux_hidden_states * drafter.target_hidden_size, drafter.rms_norm_eps
        self.embed_tokens = nn.Embedding(drafter.vocab_size, drafter.hidden_size)
        if drafter.norm_before_fc:
            self.input_norm = _Norm(width, eps)
        if drafter.fc_norm:
            norms = [_Norm(drafter.target_hidden_size, eps) for _ in range(drafter.num_aux_hidden_states)]
            self.fc_norm = nn.ModuleList(norms)
        if drafter.num_aux_hidden_states:
            self.fc = nn.Linear(width, drafter.hidden_size, bias=False)
        self.layers = nn.ModuleList(_Layer(drafter, number) for number in range(drafter.num_hidden_layers))
        self.norm = _Norm(drafter.hidden_size, eps)
        self.lm_head = nn.Linear(drafter.hidden_size, drafter.draft_vocab_size, bias=False)
        if drafter.pruned:
            self.register_buffer("d2t", torch.empty(drafter.draft_vocab_size, dtype=torch.int64))

    @classmethod
    def load(cls, drafter: Drafter, tensors: Mapping[str, Tensor]) -> DraftModel:
        """A drafter that holds these very tensors, by canonical name; the embedding and the head are always among them.

        Raises:
            UnusableInput: it is quantised, a parallel drafter, or has a sliding window.
        """
        check_runnable(drafter)
        with torch.device("meta"):
            model = cls(drafter)
        model.load_state_dict(dict(tensors), strict=True, assign=True)
        model.rotary = rotary_embedding(drafter).to(tensors["norm.weight"].device)
        return model.eval()

    def combine(self, aux: Tensor) -> Tensor:
        """The state [B, T, H] that the first step starts from, of the target's states [B, T, A * Ht]."""
        drafter = self.drafter
        if drafter.norm_before_fc:
            aux = self.input_norm(aux)
        if drafter.fc_norm:
            chunks = aux.chunk(drafter.num_aux_hidden_states, dim=-1)
            aux = torch.cat([norm(chunk) for norm, chunk in zip(self.fc_norm, chunks, strict=True)], dim=-1)
        return self.fc(aux) if drafter.num_aux_hidden_states else aux

    def forward(self, tokens: Tensor, state: Tensor, positions: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """States before and after the final norm.

        Args:
            tokens: what follows each position, [B, T].
            state: the target's combined states or those of the step before, [B, T, H].
            positions: [T].
            memory: what was attended to before; takes note of this step.
        """
        embedded = self.embed_tokens(tokens)
        angles = self.rotary(state, positions[None])
        for number, layer in enumerate(self.layers):
            state = layer(embedded, state, angles, memory, number)
        return state, self.norm(state)

    def draft(self, aux: Tensor, tokens: Tensor, depth: int) -> Iterator[Step]:
        """`depth` draft steps after the last position, one at a time as an engine runs them; S is 1.

        Args:
            aux: the target's states, [B, T, A * Ht].
            tokens: the token that follows each of them, [B, T].
            depth: how many tokens to draft.
        """
        memory, last = CausalMemory(), tokens.shape[1] - 1
        state, positions = self.combine(aux), torch.arange(last + 1, device=tokens.device)
        for k in range(depth):
            before, after = (states[:, -1:] for states in self(tokens, state, positions, memory))
            step = self._step(before, after)
            yield step
            tokens, state = self.target_ids(step.logits.argmax(-1)), step.state
            positions = torch.full((1,), last + k + 1, device=tokens.device)

    def unroll(
        self, aux: Tensor, tokens: Tensor, depth: int, slots: range | None = None, watch: Watch | None = None
    ) -> Iterator[Step]:
        """`depth` draft steps from every slot at once, each fed the true tokens (training-time test).

        A slot's step k attends to the first pass up to the slot and to its own steps 1 to k; nothing else, so it equals
        `draft` from there as long as the drafts are right.

        Args:
            aux: the target's states, [B, T, A * Ht].
            tokens: the token that follows each of them and those after, [B, at least slots.stop + depth - 1].
            depth: how many tokens to draft.
            slots: consecutive positions to draft from; all T when None.
            watch: sees the attention probabilities.
        """
        length = aux.shape[1]
        packing = Packing((length,), ((slots or range(length),),))
        for before, after in self.chains(aux, tokens, depth, packing, watch):
            yield self._step(before, after)

    def chains(
        self, aux: Tensor, tokens: Tensor, depth: int, packing: Packing, watch: Watch | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """States [B, S, H] before and after the final norm of each draft step, as in `unroll`, of documents in a row.

        Args:
            aux: the target's states of all documents, [B, T, A * Ht].
            tokens: the token that follows each of them, and as many as there are steps less one behind the last
                document, [B, T + depth - 1]; a chain that leaves its document is fed those of the next.
            depth: how many tokens to draft.
            packing: where documents begin and which slots they have.
            watch: sees the attention probabilities.
        """
        memory = ChainMemory(packing, watch)
        positions, places = packing.positions.to(tokens.device), packing.places.to(tokens.device)
        before, after = self(tokens[:, : len(positions)], self.combine(aux), positions, memory)
        before, after, positions = before[:, places], after[:, places], positions[places]
        for k in range(1, depth + 1):
            yield before, after
            if k < depth:
                state = after if self.drafter.norm_output else before
                before, after = self(tokens[:, places + k], state, positions + k, memory)

    def recompute(self, wanted: bool) -> None:
        """Whether MLPs are computed a second time for their gradients, instead of keeping what they need in memory."""
        for layer in self.layers:
            layer.recompute = wanted

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """The target's ids of draft ids."""
        return draft_ids + self.d2t[draft_ids] if self.drafter.pruned else draft_ids

    def _step(self, before: Tensor, after: Tensor) -> Step:
        return Step(self.lm_head(after), after if self.drafter.norm_output else before, before)


class _Norm(nn.RMSNorm):
    """In its weights' precision, whatever autocast makes of its input."""

    def forward(self, states: Tensor) -> Tensor:
        return super().forward(states.to(self.weight.dtype))


class _Layer(nn.Module):
    def __init__(self, drafter: Drafter, number: int) -> None:
        super().__init__()
        hidden, eps = drafter.hidden_size, drafter.rms_norm_eps
        self.first, self.norm_before_residual = number == 0, drafter.norm_before_residual
        self.input_layernorm = _Norm(hidden, eps)
        if self.first:
            self.hidden_norm = _Norm(hidden, eps)
        self.post_attention_layernorm = _Norm(hidden, eps)
        attention = _LatentAttention if drafter.architecture == "mla" else _Attention
        self.self_attn = attention(drafter, 2 * hidden if self.first else hidden)
        self.mlp = _Mlp(drafter)
        self.recompute = False

    def forward(self, embedded: Tensor, state: Tensor, angles: Any, memory: Memory, number: int) -> Tensor:
        if self.first:
            normed = self.hidden_norm(state)
            state = normed if self.norm_before_residual else state
            normed = torch.cat([self.input_layernorm(embedded), normed], dim=-1)
        else:
            normed = self.input_layernorm(state)
        state = state + self.self_attn(normed, angles, memory, number)
        fed: Tensor = checkpoint(self._fed, state, use_reentrant=False) if self.recompute else self._fed(state)
        return state + fed

    def _fed(self, state: Tensor) -> Tensor:
        result: Tensor = self.mlp(self.post_attention_layernorm(state))
        return result


class _Mlp(nn.Module):
    def __init__(self, drafter: Drafter) -> None:
        super().__init__()
        hidden, inner, bias = drafter.hidden_size, drafter.intermediate_size, drafter.mlp_bias
        self.gate_proj = nn.Linear(hidden, inner, bias)
        self.up_proj = nn.Linear(hidden, inner, bias)
        self.down_proj = nn.Linear(inner, hidden, bias)

    def forward(self, state: Tensor) -> Tensor:
        result: Tensor = self.down_proj(functional.silu(self.gate_proj(state)) * self.up_proj(state))
        return result


class _Attention(nn.Module):
    """Grouped-query attention, with a norm on each query and key in qwen3 drafters."""

    def __init__(self, drafter: Drafter, width: int) -> None:
        super().__init__()
        size, bias = int(drafter.head_dim or 0), drafter.attention_bias
        self.size, self.scale = size, size**-0.5
        self.q_proj = nn.Linear(width, drafter.num_attention_heads * size, bias)
        self.k_proj = nn.Linear(width, drafter.num_key_value_heads * size, bias)
        self.v_proj = nn.Linear(width, drafter.num_key_value_heads * size, bias)
        output_bias = bias and drafter.architecture == "llama"
        self.o_proj = nn.Linear(drafter.num_attention_heads * size, drafter.hidden_size, output_bias)
        self.normed = drafter.architecture == "qwen3"
        if self.normed:
            self.q_norm, self.k_norm = (_Norm(size, drafter.rms_norm_eps) for _ in "qk")

    def forward(self, states: Tensor, angles: Any, memory: Memory, layer: int) -> Tensor:
        query, key, value = (_heads(project(states), self.size) for project in (self.q_proj, self.k_proj, self.v_proj))
        if self.normed:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = rotate(query, angles), rotate(key, angles)
        attended = memory.attend(layer, query * self.scale, key, value)
        result: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return result


class _LatentAttention(nn.Module):
    """DeepSeek's latent attention, written out head by head; the rotated part of the key is shared by all heads."""

    def __init__(self, drafter: Drafter, width: int) -> None:
        super().__init__()
        sizes, heads, eps = drafter.mla, drafter.num_attention_heads, drafter.rms_norm_eps
        self.heads, self.latent, q_rank = heads, sizes["kv_lora_rank"], sizes["q_lora_rank"]
        self.plain, self.rotated, self.value = (sizes[f"{part}_head_dim"] for part in ("qk_nope", "qk_rope", "v"))
        self.scale = (self.plain + self.rotated) ** -0.5 * yarn_scale(drafter.rope_scaling or {})
        self.q_a_proj = nn.Linear(width, q_rank, bias=False)
        self.q_a_layernorm = _Norm(q_rank, eps)
        self.q_b_proj = nn.Linear(q_rank, heads * (self.plain + self.rotated), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(width, self.latent + self.rotated, bias=False)
        self.kv_a_layernorm = _Norm(self.latent, eps)
        self.kv_b_proj = nn.Linear(self.latent, heads * (self.plain + self.value), bias=False)
        self.o_proj = nn.Linear(heads * self.value, drafter.hidden_size, bias=False)

    def forward(self, states: Tensor, angles: Any, memory: Memory, layer: int) -> Tensor:
        query = _heads(self.q_b_proj(self.q_a_layernorm(self.q_a_proj(states))), self.plain + self.rotated)
        plain, rotated = query.split([self.plain, self.rotated], dim=-1)
        latent, shared = self.kv_a_proj_with_mqa(states).split([self.latent, self.rotated], dim=-1)
        both = _heads(self.kv_b_proj(self.kv_a_layernorm(latent)), self.plain + self.value)
        key, value = both.split([self.plain, self.value], dim=-1)
        shared = rotate(paired(shared[:, None]), angles).expand(-1, self.heads, -1, -1)
        query = torch.cat([plain, rotate(paired(rotated), angles)], dim=-1)
        attended = memory.attend(layer, query * self.scale, torch.cat([key, shared], dim=-1), value)
        result: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return result


def _heads(flat: Tensor, size: int) -> Tensor:
    return flat.unflatten(-1, (-1, size)).transpose(1, 2)


def check_runnable(drafter: Drafter) -> None:
    """Raise what `DraftModel.load` would, before its weights are read."""
    windows = "sliding_attention" in (drafter.extra.get("layer_types") or ())
    reasons = {
        "it is quantised": drafter.quantized,
        "it drafts in parallel (P-EAGLE)": drafter.parallel_drafting,
        "its layers have a sliding window": windows,
        "q_lora_rank is null, which no engine's drafter class loads": "mla_plain_q" in drafter.traits(),
    }
    for reason, holds in reasons.items():
        if holds:
            raise UnusableInput(f"this drafter cannot be run here: {reason}", where="drafter")
