"""Looks inside a running vLLM: what the drafter's module holds, and what passes between target and drafter.

`worker.py` loads it by its path; it needs what vLLM needs and nothing else. The functions with an underscore run inside
vLLM's own workers, one for each GPU, which get them by value.

A file that `Inside.save` writes holds, for each watched prompt by its number I: `I.tokens` [T], of prompt and answer;
`I.aux` [T - 1, A * Ht], the states that the target handed to the drafter at all tokens but the last; `I.L` [T - 1, Ht],
what enters the target's layer L, for the neighbours of those states; `I.drafts` [D, 1 + K], the position of the last
token whose states a draft had, and the K drafted tokens.
"""

from __future__ import annotations

import hashlib
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Several of a checkpoint's tensors in one of the engine's, one after the other along the first axis.
_STACKED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
_RENAMED = {"draft_id_to_target_id": "d2t"}
_BLOCK_ROWS = 4096


class Inside:
    """The workers of an engine, asked about the drafter."""

    def __init__(self, llm: Any) -> None:
        self._ask: Callable[..., list[Any]] = llm.collective_rpc

    def describe(self) -> dict[str, Any] | None:
        """What the first worker holds; None where this vLLM keeps its drafter elsewhere.

        `tensors` has the `shape` and `sha256` of each, under the checkpoint's names; the digest is of its values as
        float32 (or int64), and null for one that is the target's own. `flags` are null where there is no telling.
        """
        return next(filter(None, self._ask(_describe)), None)

    def watch(self, prompts: dict[int, list[int]]) -> bool:
        """Record these prompts, given by number, from now on; returns whether this vLLM allows it."""
        return all(self._ask(_watch, args=(prompts,)))

    def save(self, file: str) -> list[int]:
        """Stop recording and write what there is; returns the numbers of the prompts that were recorded whole."""
        return next(filter(None, self._ask(_save, args=(file,))), [])


def _describe(worker: Any) -> dict[str, Any] | None:
    try:
        model = _drafter(worker)
        return {"tensors": _held(model, worker.get_model()), "flags": _flags(worker, model)}
    except Exception:  # noqa: BLE001 - another vLLM may differ in anything, and the engine must not fail for it
        return None


def _held(model: Any, target: Any) -> dict[str, Any]:
    targets, held = {id(parameter) for parameter in target.parameters()}, {}
    for name, tensor, own in _tensors(model, targets):
        digest = _digest(tensor) if own and tensor is not None else None
        held[name] = {"shape": list(tensor.shape) if tensor is not None else None, "sha256": digest, "shared": not own}
    return held


def _drafter(worker: Any) -> Any:
    """The drafter's module: the V1 model runner has a `drafter`, the V2 one a `speculator`."""
    runner = worker.model_runner
    holder = getattr(runner, "drafter", None) or getattr(runner, "speculator", None)
    model: Any = getattr(holder, "model", None)
    return model.unwrap() if hasattr(model, "unwrap") else model


def _tensors(model: Any, targets: set[int]) -> Iterator[tuple[str, Any, bool]]:
    """Name in the checkpoint, value, and whether it is the drafter's own, of every parameter."""
    for place, module in model.named_modules():
        leading, _, leaf = place.removeprefix("model").removeprefix(".").rpartition(".")
        for name, parameter in module.named_parameters(recurse=False):
            value = _whole(module, parameter)
            parts = _STACKED.get(leaf)
            names = [_join(leading, part, name) for part in parts or (leaf,)]
            values = [value]
            if parts:
                sizes = getattr(module, "output_partition_sizes", None) or module.output_sizes
                values = [None] * len(parts) if value is None else list(value.split(list(sizes)))
            for each, tensor in zip(names, values, strict=True):
                yield each, tensor, id(parameter) not in targets


def _join(*parts: str) -> str:
    name = ".".join(filter(None, parts))
    return _RENAMED.get(name, name)


def _whole(module: Any, parameter: Any) -> Any:
    """A parameter's value without the rows that pad a vocabulary.

    A CPU build packs weights and empties the parameter; multiplied with the identity, the layer gives them back.
    """
    import torch

    if parameter.numel():
        rows = getattr(module, "org_vocab_size", None)
        return parameter.detach()[:rows]
    if not hasattr(module, "quant_method"):
        return None
    width = getattr(module, "input_size_per_partition", None) or module.input_size
    identity = torch.eye(width, dtype=parameter.dtype, device=parameter.device)
    with torch.inference_mode():
        return module.quant_method.apply(module, identity, None).T


def _digest(tensor: Any) -> str:
    import torch

    hashed = hashlib.sha256()
    dtype = torch.float32 if tensor.is_floating_point() else torch.int64
    for block in tensor.split(_BLOCK_ROWS):
        hashed.update((block.to("cpu", dtype) + 0).contiguous().numpy())  # + 0 turns -0.0 into 0.0
    return hashed.hexdigest()


def _flags(worker: Any, model: Any) -> dict[str, Any]:
    inner = getattr(model, "model", model)
    layer = inner.layers[0]
    residual = getattr(getattr(layer, "_residual_norm", None), "__name__", None)
    rotary = getattr(layer.self_attn, "rotary_emb", None)
    captured = _capturing(worker.get_model())
    return {
        "fc_norm": inner.fc_norm is not None if hasattr(inner, "fc_norm") else None,
        "norm_output": getattr(inner, "norm_output", None),
        "norm_before_fc": getattr(inner, "norm_before_fc", None),
        "norm_before_residual": residual and residual == "_norm_before_residual",
        "num_aux_hidden_states": getattr(inner, "num_aux_hidden_states", None),
        "aux_layer_ids": sorted(captured.aux_hidden_state_layers) if captured is not None else None,
        "rms_norm_eps": getattr(inner.norm, "variance_epsilon", None),
        "rope_theta": getattr(rotary, "base", None),
    }


def _capturing(target: Any) -> Any:
    """The part of the target that hands states to the drafter."""
    modules = (module for module in target.modules() if getattr(module, "aux_hidden_state_layers", ()))
    return next(modules, None)


def _watch(worker: Any, prompts: dict[int, list[int]]) -> bool:
    runner = worker.model_runner
    drafter = getattr(runner, "drafter", None)
    if not all(hasattr(*pair) for pair in ((drafter, "propose"), (runner, "input_batch"), (runner, "requests"))):
        return False
    worker.eaglehub_recorder = _Recorder(runner, _capturing(worker.get_model()), prompts)
    return True


def _save(worker: Any, file: str) -> list[int]:
    recorder: _Recorder = worker.__dict__.pop("eaglehub_recorder")
    recorder.stop()
    return recorder.save(file) if worker.rank == 0 else []


class _Recorder:
    """Stands before the drafter's `propose` and notes what goes in and what comes out, for the watched prompts."""

    def __init__(self, runner: Any, capturing: Any, prompts: dict[int, list[int]]) -> None:
        self.runner = runner
        self.numbers = {tuple(tokens): number for number, tokens in prompts.items()}
        self.rows: dict[int, list[dict[str, Any]]] = {}
        self.drafts: dict[int, list[list[int]]] = {}
        self.caught: dict[int, Any] = {}
        self.hooks = list(self._hooks(capturing)) if capturing is not None else []
        self.propose = runner.drafter.propose
        runner.drafter.propose = self._propose

    def stop(self) -> None:
        """As before."""
        del self.runner.drafter.propose
        for hook in self.hooks:
            hook.remove()

    def _hooks(self, capturing: Any) -> Iterator[Any]:
        """On the neighbours of the captured layers; compiled layers never call them."""
        captured, layers = set(capturing.aux_hidden_state_layers), capturing.layers
        around = {layer + step for layer in captured for step in (-1, 1)} - captured
        for layer in around & set(range(len(layers))):
            yield layers[layer].register_forward_pre_hook(self._entering(layer), with_kwargs=True)
        if len(layers) in around:
            yield layers[-1].register_forward_hook(self._leaving(len(layers)))

    def _entering(self, layer: int) -> Callable[..., None]:
        def hook(module: Any, args: Any, kwargs: Any) -> None:
            given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
            self.caught[layer] = _summed(given["hidden_states"], given.get("residual"))

        return hook

    def _leaving(self, layer: int) -> Callable[..., None]:
        def hook(_module: Any, _args: Any, output: Any) -> None:
            self.caught[layer] = _summed(*output) if isinstance(output, tuple) else output

        return hook

    def _propose(self, *args: Any, **kwargs: Any) -> Any:
        try:
            noted = list(self._note(**inspect.signature(self.propose).bind(*args, **kwargs).arguments))
        except (TypeError, AttributeError, LookupError):  # another vLLM's way; the engine must not fail for it
            noted, self.rows, self.numbers = [], {}, {}
        drafted = self.propose(*args, **kwargs)
        for number, index, position in noted:
            self.drafts.setdefault(number, []).append([position, *drafted[index].tolist()])
        return drafted

    def _note(
        self,
        *,
        target_token_ids: Any,
        target_positions: Any,
        target_hidden_states: Any,
        next_token_ids: Any,
        token_indices_to_sample: Any,
        common_attn_metadata: Any,
        **_others: Any,
    ) -> Iterator[tuple[int, int, int]]:
        """Copies, as vLLM uses its buffers again; yields prompt, place in the batch and last position of each draft.

        Behind a request's last accepted token there are rows of rejected ones.
        """
        starts = common_attn_metadata.query_start_loc_cpu.tolist()
        ends = token_indices_to_sample
        lasts = [start - 1 for start in starts[1:]] if ends is None else ends.tolist()
        positions = target_positions if target_positions.ndim == 1 else target_positions[0]
        for index, last in enumerate(lasts):
            prompt = tuple(self.runner.requests[self.runner.input_batch.req_ids[index]].prompt_token_ids)
            number = self.numbers.get(prompt)
            if number is None:
                continue
            rows = slice(starts[index], last + 1)
            sources = {"tokens": target_token_ids, "positions": positions, "aux": target_hidden_states}
            kept = sources | {str(layer): states for layer, states in self.caught.items()}
            noted = {name: tensor[rows].to("cpu", copy=True) for name, tensor in kept.items()}
            self.rows.setdefault(number, []).append(noted | {"next": next_token_ids[index].to("cpu", copy=True)})
            position = int(noted["positions"][-1])
            if position >= len(prompt) - 1:
                yield number, index, position
        self.caught.clear()

    def save(self, file: str) -> list[int]:
        """Write every prompt that was recorded whole; returns their numbers."""
        import torch
        from safetensors.torch import save_file

        tensors: dict[str, Any] = {}
        for number, rows in self.rows.items():
            whole = _assembled(rows)
            if whole and self.drafts.get(number):
                tensors |= {f"{number}.{name}": tensor for name, tensor in whole.items()}
                tensors[f"{number}.drafts"] = torch.tensor(self.drafts[number])
        save_file(tensors, file)
        return sorted({int(name.partition(".")[0]) for name in tensors})


def _summed(states: Any, residual: Any) -> Any:
    return states.clone() if residual is None else states + residual


def _assembled(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """All positions of one prompt in order; None if one is missing. What was computed again counts."""
    import torch

    places = torch.cat([each["positions"] for each in rows]).tolist()
    latest = {place: row for row, place in enumerate(places)}
    if sorted(latest) != list(range(len(latest))):
        return None
    order = torch.tensor([latest[place] for place in range(len(latest))])
    names = set.intersection(*(set(each) for each in rows)) - {"positions", "next"}
    whole = {name: torch.cat([each[name] for each in rows])[order].contiguous() for name in names}
    tokens = torch.cat([whole["tokens"], rows[-1]["next"][None].to(whole["tokens"].dtype)])
    return whole | {"tokens": tokens.long()}
