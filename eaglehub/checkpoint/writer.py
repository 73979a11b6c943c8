"""Writing a checkpoint: whole or not at all, durable, and compared with what was meant."""

from __future__ import annotations

import errno
import json
import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eaglehub.checkpoint.dtypes import RANK, itemsize, numpy_dtype
from eaglehub.checkpoint.files import SourceFile
from eaglehub.checkpoint.header import check_tensor_name, encode_header
from eaglehub.checkpoint.staging import staged_folder, sync_folder
from eaglehub.checkpoint.transfer import Part, write_verified
from eaglehub.errors import EaglehubError, EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SINGLE_FILE = "model.safetensors"
_INDEX_FILE = "model.safetensors.index.json"
# Readers that look for it refuse a file without.
_METADATA = {"format": "pt"}
_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space, or write elsewhere"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or write elsewhere"),
    errno.EFBIG: ("the file is larger than allowed here", "raise the limit, or write shards"),
    errno.EACCES: ("no permission to write", "choose a folder you may write into"),
    errno.EPERM: ("no permission to write", "choose a folder you may write into"),
    errno.EROFS: ("the file system is read-only", "choose a folder you may write into"),
}


@dataclass(frozen=True)
class OutputTensor:
    """One tensor to write.

    Attributes:
        name: name in the file.
        dtype: safetensors type name, e.g. `BF16`.
        shape: sizes; () for a scalar.
        chunks: gives its values in C order, in arrays of that type and any shape.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    chunks: Callable[[], Iterator[npt.NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        """Bytes of its values."""
        return math.prod(self.shape) * itemsize(self.dtype)


@dataclass(slots=True)
class _Shard:
    tensors: list[OutputTensor] = field(default_factory=list)
    nbytes: int = 0


def write_checkpoint(
    destination: Path,
    tensors: Sequence[OutputTensor],
    files: Mapping[str, bytes | Path],
    *,
    force: bool = False,
    max_shard_size: int | None = None,
    late_files: Callable[[], Mapping[str, bytes]] | None = None,
    watch: Callable[[str, npt.NDArray[Any]], None] | None = None,
    progress: Callable[[int], None] | None = None,
    approve: Callable[[Path], None] | None = None,
    protect: Sequence[Path] = (),
) -> None:
    """Write tensors and files into the folder `destination`, which appears only when everything is safely in it.

    A weight file is what the official safetensors library would write for the same tensors in the same order.

    Args:
        destination: absent or empty; its parent must exist.
        tensors: what to write; those of one type stay in this order.
        files: the other files by plain name: their bytes, or a file to copy.
        force: replace an existing drafter folder.
        max_shard_size: bytes of weights a file; None for a single file. A larger tensor gets a file of its own.
        late_files: called once the weights are written; gives further files.
        watch: sees every chunk of every tensor as re-read from the disk; what it raises aborts. Do not keep the chunk.
        progress: called with the number of bytes of the weights done since the last call.
        approve: called with the finished folder before it becomes the destination; what it raises aborts.
        protect: folders that must not be replaced, e.g. the source's; those of copied files are by themselves.

    Raises:
        UsageProblem: the destination is not free, or a file name is not plain.
        UnusableInput: a tensor name or type is not acceptable, or a source file cannot be read.
        EnvironmentProblem: disk full, no permission, or the disk returned other bytes than were written.
    """
    shards = _plan(tensors, max_shard_size)
    weights = _weight_parts(shards)
    copied_from = [source.parent for source in files.values() if isinstance(source, Path)]
    with (
        _system_errors(destination.name),
        staged_folder(destination, force=force, protect=[*protect, *copied_from]) as stage,
    ):
        for name, parts in weights.items():
            write_verified(stage / name, parts, watch=watch, progress=progress)
        _write_files(stage, {**_index(shards), **files})
        if late_files:
            _write_files(stage, late_files())
        if approve:
            approve(stage)
        sync_folder(stage)


def _plan(tensors: Sequence[OutputTensor], max_shard_size: int | None) -> list[_Shard]:
    """Fill shards in the given order, then put wide types first in each, so that every tensor is aligned."""
    for tensor in tensors:
        check_tensor_name(tensor.name, "output")
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise EaglehubError("two output tensors have the same name")
    shards = [_Shard()]
    for tensor in tensors:
        if max_shard_size and shards[-1].tensors and shards[-1].nbytes + tensor.nbytes > max_shard_size:
            shards.append(_Shard())
        shards[-1].tensors.append(tensor)
        shards[-1].nbytes += tensor.nbytes
    for shard in shards:
        shard.tensors.sort(key=lambda tensor: -RANK[tensor.dtype])
    return shards


def _shard_name(number: int, count: int) -> str:
    return _SINGLE_FILE if count == 1 else f"model-{number + 1:05d}-of-{count:05d}.safetensors"


def _weight_parts(shards: Sequence[_Shard]) -> dict[str, list[Part]]:
    return {
        _shard_name(number, len(shards)): [_header_part(shard), *map(_tensor_part, shard.tensors)]
        for number, shard in enumerate(shards)
    }


def _header_part(shard: _Shard) -> Part:
    return _bytes_part(encode_header([(each.name, each.dtype, each.shape) for each in shard.tensors], _METADATA))


def _bytes_part(data: bytes) -> Part:
    return Part("", lambda: iter([np.frombuffer(data, np.uint8)]))


def _tensor_part(tensor: OutputTensor) -> Part:
    def checked() -> Iterator[npt.NDArray[Any]]:
        left = tensor.nbytes
        for chunk in tensor.chunks():
            left -= chunk.nbytes
            if chunk.dtype != numpy_dtype(tensor.dtype) or left < 0:
                break
            yield chunk
        else:
            if left == 0:
                return
        raise EaglehubError(f"its values are not what its type {tensor.dtype} and shape promise", where=tensor.name)

    return Part(tensor.name, checked)


def _index(shards: Sequence[_Shard]) -> dict[str, bytes | Path]:
    if len(shards) == 1:
        return {}
    weight_map = {
        tensor.name: _shard_name(number, len(shards)) for number, shard in enumerate(shards) for tensor in shard.tensors
    }
    index = {"metadata": {"total_size": sum(shard.nbytes for shard in shards)}, "weight_map": weight_map}
    return {_INDEX_FILE: (json.dumps(index, indent=2, sort_keys=True) + "\n").encode()}


def _write_files(stage: Path, files: Mapping[str, bytes | Path]) -> None:
    for name, content in files.items():
        if Path(name).name != name:
            raise UsageProblem(f"{name!r} is not a plain file name")
        if (stage / name).exists():
            raise UsageProblem(f"the output has the file {name} already", where=name)
        part = _copy_part(content) if isinstance(content, Path) else _bytes_part(content)
        write_verified(stage / name, [part])


def _copy_part(path: Path) -> Part:
    source = SourceFile.at(path, f"{path.parent.name}/{path.name}")
    return Part("", lambda: source.blocks(0, source.size))


@contextmanager
def _system_errors(where: str) -> Iterator[None]:
    """Turn what the system refuses into the error that says so."""
    try:
        yield
    except OSError as error:
        what, fix = _REASONS.get(error.errno or 0, (f"cannot be written: {error.strerror or error}", ""))
        raise EnvironmentProblem(what, where=where, fix=fix) from error
