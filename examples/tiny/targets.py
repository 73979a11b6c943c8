"""The tiny targets and their tokenizer, trained with transformers' own model classes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from .corpus import conversation

if TYPE_CHECKING:
    from pathlib import Path

VOCAB, HIDDEN, LAYERS, HEADS, HEAD_DIM, INTERMEDIATE = 512, 128, 4, 4, 32, 256
EPS, ROPE_THETA, POSITIONS = 1e-6, 10000.0, 2048
# vLLM's CPU kernel for latent attention has no other sizes than these two.
LATENT = {
    "q_lora_rank": 64,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 64,
    "v_head_dim": 32,
}
# Stretches nothing, but is what every real model of this family has: vLLM rotates plain RoPE wrongly for it on a CPU.
YARN = {
    "rope_type": "yarn",
    "factor": 1.0,
    "original_max_position_embeddings": POSITIONS,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
_BATCH, _LENGTH, _RATE = 12, 128, 4e-3
_SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_tokenizer() -> Any:
    """A byte-level BPE, so that any text can be written with it."""
    rng = random.Random(0)
    texts = [message["content"] for _ in range(400) for message in conversation(rng)]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        max_token_length=6,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|end|>", pad_token="<|end|>")
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def make_target(kind: str, tokenizer: Any, steps: int) -> Any:
    """Train a target on its way to answering; float32."""
    torch.manual_seed(0)
    model = _MODELS[kind](vocab_size=len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
    rng = random.Random(1)
    for _ in range(steps):
        tokens = batch(tokenizer, rng)
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def save_target(model: Any, tokenizer: Any, folder: Path) -> None:
    """As the Hub has it."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def batch(tokenizer: Any, rng: random.Random) -> torch.Tensor:
    """Token ids [batch, length] of conversations, one after the other."""
    rows = []
    for _ in range(_BATCH):
        tokens: list[int] = []
        while len(tokens) < _LENGTH:
            text = tokenizer.apply_chat_template(conversation(rng), tokenize=False)
            tokens += tokenizer.encode(text, add_special_tokens=False)
        rows.append(tokens[:_LENGTH])
    return torch.tensor(rows)


def _common(vocab_size: int) -> dict[str, Any]:
    return {
        "vocab_size": vocab_size,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "rms_norm_eps": EPS,
        "max_position_embeddings": POSITIONS,
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": 0,
        "pad_token_id": 0,
    }


def _llama(vocab_size: int) -> Any:
    return LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, head_dim=HEAD_DIM, **_common(vocab_size)))


def _qwen3(vocab_size: int) -> Any:
    return Qwen3ForCausalLM(Qwen3Config(num_key_value_heads=2, head_dim=HEAD_DIM, **_common(vocab_size)))


def _mla(vocab_size: int) -> Any:
    dense = {"first_k_dense_replace": LAYERS, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1}
    config = _common(vocab_size) | dense | LATENT | {"rope_parameters": {**YARN, "rope_theta": ROPE_THETA}}
    return DeepseekV3ForCausalLM(DeepseekV3Config(num_key_value_heads=HEADS, topk_group=1, **config))


_MODELS = {"llama": _llama, "qwen3": _qwen3, "mla": _mla}
