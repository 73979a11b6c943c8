"""Extraction: from samples to a filled store, with transformers or with vLLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.errors import EnvironmentProblem, UnusableInput, UsageProblem
from eaglehub.features.encode import load_tokenizer
from eaglehub.features.store import Extraction, Store, fingerprint, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eaglehub.drafter.target import Target
    from eaglehub.features.encode import Sample

# As many draft steps can be judged at an answer's last token.
LOOKAHEAD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A target and how it is run.

    Attributes:
        target: its facts; its config, tokenizer and weights are in its folder.
        engine: `transformers` or `vllm`.
        compute_dtype: `float32`, `bfloat16` or `float16`.
        dtype: in which states are stored, `float32` or `bfloat16`.
        trust_remote_code: whether the target may bring code along.
        tensor_parallel_size, executor: for vLLM alone; `executor` is `mp`, `ray` or None for vLLM's choice.
    """

    target: Target
    engine: str = "transformers"
    compute_dtype: str = "float32"
    dtype: str = "float32"
    trust_remote_code: bool = False
    tensor_parallel_size: int = 1
    executor: str | None = None

    @property
    def folder(self) -> Path:
        """Where config, tokenizer and weights are."""
        if self.target.folder is None:
            raise ValueError("this target was not read from a folder")
        return self.target.folder

    def tokenizer(self) -> Any:
        """The target's tokenizer."""
        return load_tokenizer(self.folder, trust_remote_code=self.trust_remote_code)

    def extraction(
        self,
        samples: Sequence[Sample],
        layer_ids: Sequence[int],
        *,
        max_tokens: int,
        ignore_eos: bool = False,
    ) -> Extraction:
        """What to extract; see `Extraction`.

        Raises:
            UnusableInput: a sample has ids beyond the vocabulary, or a layer id is beyond the target.
        """
        _check(samples, layer_ids, self.target)
        return Extraction(
            samples=tuple(samples),
            target=fingerprint(self.folder),
            layer_ids=tuple(layer_ids),
            hidden_size=self.target.hidden_size,
            source=self.engine,
            compute_dtype=self.compute_dtype,
            dtype=self.dtype,
            max_tokens=max_tokens,
            lookahead=LOOKAHEAD,
            stop_ids=() if ignore_eos else _stop_ids(self.tokenizer(), self.folder),
        )


def _stop_ids(tokenizer: Any, folder: Path) -> tuple[int, ...]:
    """The tokens that end an answer, as the tokenizer and the generation config say."""
    file = folder / "generation_config.json"
    declared = read_json_object(file).get("eos_token_id") if file.is_file() else None
    ids = declared if isinstance(declared, list) else [declared]
    return tuple(sorted({int(each) for each in [*ids, tokenizer.eos_token_id] if each is not None}))


def extract(
    source: Source, extractions: Sequence[Extraction], root: Path, progress: Callable[[int], None] = lambda _: None
) -> list[Store]:
    """Fill the stores of the extractions in `root` as far as they are not filled; the target is only loaded if need be.

    Args:
        source: the target.
        extractions: made by `source.extraction`.
        root: folder of stores.
        progress: called with the number of bytes extracted since the last call.

    Raises:
        EnvironmentProblem: no room, no permission, or a package is missing.
        UnusableInput: the target cannot be run.
    """
    stores = [Store(root, extraction) for extraction in extractions]
    unfilled = [store for store in stores if store.missing()]
    prepare(unfilled)
    if unfilled and source.engine == "vllm":
        from eaglehub.features.vllm_engine import fill

        fill(source, unfilled, progress)
    elif unfilled:
        target = _transformers(source)
        for store in unfilled:
            target.fill(store, progress)
    return stores


def _transformers(source: Source) -> Any:
    try:
        from eaglehub.features.target import TransformersTarget
    except ImportError as error:
        raise EnvironmentProblem(
            "running a target needs torch and transformers", fix="pip install 'eaglehub[train]'"
        ) from error
    return TransformersTarget(source.folder, source.compute_dtype, trust_remote_code=source.trust_remote_code)


def _check(samples: Sequence[Sample], layer_ids: Sequence[int], target: Target) -> None:
    if not samples:
        raise UsageProblem("there are no prompts to run", where="--prompts")
    if not all(sample.prompt for sample in samples):
        raise UnusableInput("a prompt is empty", where="--prompts")
    if max(layer_ids) > target.num_hidden_layers:
        raise UnusableInput(
            f"the drafter reads the state that enters layer {max(layer_ids)}, and the target has "
            f"{target.num_hidden_layers} layers",
            where=f"target {target.name}",
            fix="--aux-layer-ids, or the target that the drafter was made for",
        )
    if max(max(sample.prompt) for sample in samples) >= target.vocab_size:
        raise UnusableInput(
            f"the tokenizer gives ids beyond the vocabulary of {target.vocab_size}", where=f"target {target.name}"
        )
