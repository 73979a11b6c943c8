"""The target in transformers: greedy answers, and the states on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from eaglehub.errors import EnvironmentProblem, UnusableInput
from eaglehub.features.encode import first_line
from eaglehub.features.store import Features

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eaglehub.features.encode import Sample
    from eaglehub.features.store import Store


class TransformersTarget:
    """A target that transformers can run.

    Raises:
        UnusableInput: it cannot be loaded.
    """

    def __init__(self, folder: Path, dtype: str, *, trust_remote_code: bool = False) -> None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = _load(folder, getattr(torch, dtype), trust_remote_code).eval().to(device)
        self.decoder = self.model.get_decoder()
        self.layers = _layers(self.decoder, folder.name)
        self.device = torch.device(device)

    @torch.inference_mode()
    def answers(self, prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
        """The `count` likeliest tokens after each prompt, one after the other, whatever token ends an answer."""
        longest = max(map(len, prompts))
        tokens = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=self.device)
        gaps = torch.tensor([longest - len(prompt) for prompt in prompts], device=self.device)
        visible = (torch.arange(longest + count, device=self.device) >= gaps[:, None]).long()
        cache, chosen = None, []
        for step in range(count):
            seen = longest + step
            positions = (visible[:, :seen].cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
            output = self.model(
                input_ids=tokens,
                attention_mask=visible[:, :seen],
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache, tokens = output.past_key_values, output.logits[:, -1:].argmax(-1)
            chosen.append(tokens)
        return torch.cat(chosen, dim=1).tolist()

    @torch.inference_mode()
    def states(self, tokens: Sequence[int], layer_ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """What enters the layers, side by side [T, A * Ht], and lm_head's input [T, Ht]; id L is what leaves the last.

        The last of transformers' own `hidden_states` is after the final norm, hence the hooks.
        """
        caught: dict[int, Tensor] = {}
        hooks = [self._catch(layer, caught) for layer in layer_ids]
        try:
            ids = torch.tensor([list(tokens)], device=self.device)
            head_input = self.decoder(input_ids=ids, use_cache=False).last_hidden_state[0]
        finally:
            for hook in hooks:
                hook.remove()
        return torch.cat([caught[layer] for layer in layer_ids], dim=-1), head_input

    def fill(self, store: Store, progress: Callable[[int], None]) -> None:
        """Extract every shard that the store lacks; `progress` is told the bytes of each."""
        for number in store.missing():
            samples = store.extraction.shards[number]
            features = self._features(samples, store)
            store.write_shard(number, features)
            progress(sum(each.aux.nbytes + each.head_input.nbytes for each in features))

    def _features(self, samples: Sequence[Sample], store: Store) -> list[Features]:
        extraction = store.extraction
        asked = [sample.prompt for sample in samples if sample.answer is None]
        given = iter(self.answers(asked, extraction.max_tokens + extraction.lookahead) if asked else [])
        features = []
        for sample in samples:
            tokens = [*sample.prompt, *(sample.answer or next(given))]
            aux, head_input = self.states(tokens[:-1], extraction.layer_ids)
            end = store.answer_end(tokens, sample)
            features.append(Features(torch.tensor(tokens), len(sample.prompt), end, aux, head_input, sample.earlier))
        return features

    def _catch(self, layer: int, caught: dict[int, Tensor]) -> Any:
        def before(_module: Any, args: Any, kwargs: Any) -> None:
            caught[layer] = (args[0] if args else kwargs["hidden_states"])[0]

        def after(_module: Any, _args: Any, output: Any) -> None:
            caught[layer] = (output[0] if isinstance(output, tuple) else output)[0]

        if layer == len(self.layers):
            return self.layers[-1].register_forward_hook(after)
        return self.layers[layer].register_forward_pre_hook(before, with_kwargs=True)


def _load(folder: Path, dtype: torch.dtype, trust_remote_code: bool) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.utils import logging

    logging.disable_progress_bar()
    options = {"trust_remote_code": trust_remote_code, "local_files_only": True}
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        known = type(config) in AutoModelForCausalLM._model_mapping
        family = AutoModelForCausalLM if known or trust_remote_code else AutoModelForImageTextToText
        return family.from_pretrained(folder, dtype=dtype, **options)
    except torch.OutOfMemoryError as error:
        raise EnvironmentProblem("there is not enough memory for the target", fix="--engine vllm") from error
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise UnusableInput(
            first_line(error, "cannot be loaded by transformers"), where=f"target {folder.name}"
        ) from error


def _layers(decoder: Any, name: str) -> Any:
    """The decoder's layers, whatever the family calls them."""
    lists = [module for module in decoder.children() if isinstance(module, torch.nn.ModuleList)]
    if not lists:
        raise UnusableInput(f"{type(decoder).__name__} has no list of layers to look into", where=f"target {name}")
    return max(lists, key=len)
