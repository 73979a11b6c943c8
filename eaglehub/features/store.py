"""The store: one folder for one set of features, in shards that are whole or not there.

A store's folder is named by the digest of everything that its content depends on. Shards are written one by one and
renamed into place, so an interrupted extraction goes on where it stopped, and a finished one is found again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from eaglehub.checkpoint.files import replace_file
from eaglehub.errors import EnvironmentProblem, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from torch import Tensor

    from eaglehub.features.encode import Sample

VERSION = 2
SHARD_SAMPLES = 8
ITEM_BYTES = {"float32": 4, "bfloat16": 2}
_SLACK = 1.05
_FINGERPRINT_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Features:
    """What the target made of one sample of T tokens.

    Attributes:
        tokens: [T] int64.
        prompt_length: how many of them are the prompt's.
        end: where the answer ends: what follows is only there to judge drafts that go beyond it.
        aux: states that enter the layers of the extraction, side by side, at all tokens but the last, [T - 1, A * Ht].
        head_input: what lm_head reads there, [T - 1, Ht].
        earlier: where other answers are, in the prompt: start and end of each.
    """

    tokens: Tensor
    prompt_length: int
    end: int
    aux: Tensor
    head_input: Tensor
    earlier: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Everything that the features depend on.

    Attributes:
        samples: token ids of prompts and answers.
        target: fingerprint of the target, see `fingerprint`.
        layer_ids: the states to take, in the IN convention.
        hidden_size: width Ht of each.
        source: `transformers` or `vllm`.
        compute_dtype: in which the target runs, e.g. `float32`.
        dtype: in which states are stored, `float32` or `bfloat16`.
        max_tokens: of an answer that the target gives.
        lookahead: further tokens after such an answer.
        stop_ids: tokens that end an answer; empty to go on to `max_tokens`.
    """

    samples: tuple[Sample, ...]
    target: str
    layer_ids: tuple[int, ...]
    hidden_size: int
    source: str
    compute_dtype: str
    dtype: str
    max_tokens: int
    lookahead: int
    stop_ids: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the extraction."""
        hashed = hashlib.sha256()
        for sample in self.samples:
            hashed.update(json.dumps([sample.prompt, sample.answer, sample.earlier]).encode())
        settings = {name: getattr(self, name) for name in self.__slots__ if name != "samples"}
        hashed.update(json.dumps({"version": VERSION, **settings}, sort_keys=True).encode())
        return hashed.hexdigest()

    @property
    def tokens(self) -> int:
        """Upper bound of all tokens, those to be generated included."""
        generated = self.max_tokens + self.lookahead
        return sum(len(sample.prompt) + len(sample.answer or range(generated)) for sample in self.samples)

    @property
    def nbytes(self) -> int:
        """Upper bound of the store's size."""
        return self.tokens * ((len(self.layer_ids) + 1) * self.hidden_size * ITEM_BYTES[self.dtype] + 8)

    @property
    def shards(self) -> tuple[tuple[Sample, ...], ...]:
        """The samples, shard by shard."""
        starts = range(0, len(self.samples), SHARD_SAMPLES)
        return tuple(self.samples[start : start + SHARD_SAMPLES] for start in starts)


class Span(NamedTuple):
    """How long one sample is, and where its answers are; see `Features`."""

    tokens: int
    prompt_length: int
    end: int
    earlier: tuple[tuple[int, int], ...] = ()


class Store:
    """The features of a extraction in `root`, as far as they have been extracted."""

    def __init__(self, root: Path, extraction: Extraction) -> None:
        self.extraction = extraction
        self.folder = root / f"features-{extraction.digest[:16]}"

    def __iter__(self) -> Iterator[Features]:
        """All features in the samples' order, one shard in memory at a time."""
        for number in range(len(self.extraction.shards)):
            yield from self.read_shard(number)

    def missing(self) -> list[int]:
        """Numbers of the shards that are still to be made."""
        return [number for number in range(len(self.extraction.shards)) if not self._file(number).exists()]

    @property
    def missing_bytes(self) -> int:
        """Upper bound of what is still to be written."""
        return int(self.extraction.nbytes * len(self.missing()) / len(self.extraction.shards))

    def write_shard(self, number: int, features: Sequence[Features]) -> None:
        """Write one shard, whole and durable or not at all.

        Raises:
            EnvironmentProblem: the disk is full.
        """
        packed = {name: tensor for index, each in enumerate(features) for name, tensor in self._packed(index, each)}
        self.write(self._file(number), packed)

    def write(self, file: Path, tensors: dict[str, Tensor]) -> None:
        """Write a file of the store, whole and durable or not at all.

        Raises:
            EnvironmentProblem: the disk is full.
        """
        from safetensors.torch import save

        try:
            replace_file(file, save(tensors))
        except OSError as error:
            raise EnvironmentProblem(
                f"the features cannot be written: {error.strerror}", where=str(self.folder.parent)
            ) from error

    def read_shard(self, number: int) -> list[Features]:
        """One shard's features.

        Raises:
            UnusableInput: the file is damaged.
        """
        with self.opened(self._file(number)) as tensors:
            return [_unpacked(tensors, index, each) for index, each in enumerate(self.extraction.shards[number])]

    def read(self, number: int) -> Features:
        """One sample's features, by its number; nothing else is read.

        Raises:
            UnusableInput: the file is damaged.
        """
        shard, index = self.place(number)
        with self.opened(self._file(shard)) as tensors:
            return _unpacked(tensors, index, self.extraction.samples[number])

    def spans(self) -> list[Span]:
        """Of all samples, without reading states.

        Raises:
            UnusableInput: a file is damaged.
        """
        spans = []
        for number, samples in enumerate(self.extraction.shards):
            with self.opened(self._file(number)) as tensors:
                for index, sample in enumerate(samples):
                    (count,) = tensors.get_slice(f"{index}.tokens").get_shape()
                    prompt_length, end = tensors.get_tensor(f"{index}.span").tolist()
                    spans.append(Span(count, prompt_length, end, sample.earlier))
        return spans

    def place(self, number: int) -> tuple[int, int]:
        """A sample's shard, and its number there."""
        return divmod(number, SHARD_SAMPLES)

    @contextlib.contextmanager
    def opened(self, file: Path) -> Iterator[Any]:
        """The tensors of a file of the store, read when asked for.

        Raises:
            UnusableInput: it is damaged.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, "pt") as tensors:
                yield tensors
        except (SafetensorError, OSError) as error:
            raise UnusableInput("is damaged", where=file.name, fix="remove it, and it is made anew") from error

    def answer_end(self, tokens: Sequence[int], sample: Sample) -> int:
        """Where the answer to a sample ends among all its tokens."""
        if sample.answer is not None:
            return len(tokens)
        start = len(sample.prompt)
        answer = tokens[start : start + self.extraction.max_tokens]
        stops = [place for place, token in enumerate(answer) if token in self.extraction.stop_ids]
        return start + (stops[0] + 1 if stops else len(answer))

    def _file(self, number: int) -> Path:
        return self.folder / f"shard-{number:05d}.safetensors"

    def _packed(self, index: int, features: Features) -> Iterator[tuple[str, Tensor]]:
        import torch

        dtype = getattr(torch, self.extraction.dtype)
        span = torch.tensor([features.prompt_length, features.end])
        yield f"{index}.tokens", features.tokens
        yield f"{index}.span", span
        yield f"{index}.aux", features.aux.to("cpu", dtype).contiguous()
        yield f"{index}.head_input", features.head_input.to("cpu", dtype).contiguous()


def prepare(stores: Sequence[Store]) -> None:
    """Make the stores' folders.

    Raises:
        EnvironmentProblem: there is no room for the features, or no permission to write.
    """
    for store in stores:
        try:
            store.folder.mkdir(parents=True, exist_ok=True)
            for leftover in store.folder.glob("*.part"):
                leftover.unlink()
        except OSError as error:
            reason = f"features cannot be written there: {error.strerror}"
            raise EnvironmentProblem(reason, where=str(store.folder.parent)) from error
    needed = int(sum(store.missing_bytes for store in stores) * _SLACK)
    free = shutil.disk_usage(stores[0].folder).free if stores else 0
    if needed > free:
        raise EnvironmentProblem(
            f"the features need up to {_gigabytes(needed)}, and {_gigabytes(free)} are free",
            where=str(stores[0].folder.parent),
            fix="fewer prompts, a smaller --max-tokens, or --features on another disk",
        )


def fingerprint(folder: Path) -> str:
    """Hex SHA-256 that tells targets apart without reading all their weights: configs whole, weights at both ends."""
    hashed = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        weights = path.suffix in (".safetensors", ".bin", ".pt", ".gguf")
        if weights or path.suffix in (".json", ".jinja", ".model"):
            hashed.update(f"{path.name} {path.stat().st_size}\n".encode())
            with path.open("rb") as stream:
                hashed.update(stream.read(_FINGERPRINT_BYTES if weights else -1))
                stream.seek(max(stream.tell(), path.stat().st_size - _FINGERPRINT_BYTES))
                hashed.update(stream.read())
    return hashed.hexdigest()


def _unpacked(tensors: Any, index: int, sample: Sample) -> Features:
    prompt_length, end = (int(value) for value in tensors.get_tensor(f"{index}.span"))
    tokens, aux, head = (tensors.get_tensor(f"{index}.{name}") for name in ("tokens", "aux", "head_input"))
    return Features(tokens, prompt_length, end, aux, head, sample.earlier)


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
