"""The header of a safetensors file: read and checked without touching the weights, and written.

A file is eight bytes that give the header's length (little endian), the header (JSON, padded with spaces), then the
bytes of all tensors, which must cover the rest of the file without gap or overlap.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.dtypes import itemsize
from eaglehub.checkpoint.files import CHUNK_BYTES, describe_impostor
from eaglehub.checkpoint.jsonfile import parse_json_object
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eaglehub.checkpoint.folder import File

_PREFIX_BYTES = 8
_HEADER_LIMIT = 100_000_000
_METADATA = "__metadata__"
_BAD_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f/\\]|\.\.")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What a checkpoint declares of one tensor.

    Attributes:
        name: as in the file.
        dtype: safetensors type name, e.g. `BF16`.
        shape: sizes; () for a scalar.
        file: the file inside the checkpoint that holds it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its values."""
        return self.size * itemsize(self.dtype)


@dataclass(frozen=True, slots=True)
class Header:
    """A checked header: tensors in the order of their bytes, and where in the file each one's bytes start."""

    tensors: dict[str, TensorInfo]
    offsets: dict[str, int]
    metadata: dict[str, str]


def rows_per_chunk(info: TensorInfo) -> int:
    """How many rows (first dimension) make a block of at most `CHUNK_BYTES`; at least one."""
    row_bytes = info.nbytes // max(info.shape[0], 1) if info.shape else info.nbytes
    return max(1, CHUNK_BYTES // max(row_bytes, 1))


def check_tensor_name(name: str, where: str) -> None:
    """Refuse names that are empty or could act as paths or garble a terminal.

    Raises:
        UnusableInput: the name is one of these.
    """
    if not name or _BAD_NAME.search(name):
        raise UnusableInput(
            f"tensor name {name!r} is not acceptable",
            where=where,
            fix="no /, \\, .. or control characters",
            code="EH104",
        )


def read_header(source: File) -> Header:
    """The header of a safetensors file.

    Raises:
        UnusableInput: anything about it is not as the format demands.
    """
    where = source.where
    text = _header_text(source)
    data_start = _PREFIX_BYTES + len(text)
    fields = parse_json_object(text, where)
    metadata = _metadata(fields.pop(_METADATA, {}), where)
    spans = sorted((_span(name, entry, source) for name, entry in fields.items()), key=lambda span: span[1:])
    _check_cover(spans, source.size - data_start, where)
    return Header(
        tensors={info.name: info for info, _, _ in spans},
        offsets={info.name: data_start + start for info, start, _ in spans},
        metadata=metadata,
    )


def encode_header(tensors: Sequence[tuple[str, str, tuple[int, ...]]], metadata: Mapping[str, str]) -> bytes:
    """Length prefix and header for tensors given as (name, dtype, shape), in the order of their bytes.

    The result's length is a multiple of eight, so that the tensors start aligned.
    """
    fields: dict[str, Any] = {_METADATA: dict(sorted(metadata.items()))} if metadata else {}
    position = 0
    for name, dtype, shape in tensors:
        end = position + math.prod(shape) * itemsize(dtype)
        fields[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(_PREFIX_BYTES, "little") + text


def _header_text(source: File) -> bytes:
    start = source.read(0, 512)
    if impostor := describe_impostor(start):
        raise UnusableInput(impostor.what, where=source.where, fix=impostor.fix, code="EH102")
    if len(start) < _PREFIX_BYTES:
        raise UnusableInput(f"is only {source.size} bytes, not a safetensors file", where=source.where, code="EH104")
    length = int.from_bytes(start[:_PREFIX_BYTES], "little")
    if length > _HEADER_LIMIT:
        raise UnusableInput(
            "is not a safetensors file: its header would be over 100 MB", where=source.where, code="EH104"
        )
    if length > source.size - _PREFIX_BYTES:
        raise UnusableInput(
            "is truncated: it ends inside its header", where=source.where, fix="download it again", code="EH103"
        )
    text = source.read(_PREFIX_BYTES, length)
    if not text.startswith(b"{"):
        raise UnusableInput("is not a safetensors file: its header is not JSON", where=source.where, code="EH104")
    return text


def _metadata(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise UnusableInput("__metadata__ must map strings to strings", where=where, code="EH104")
    return value


def _span(name: str, entry: object, source: File) -> tuple[TensorInfo, int, int]:
    where = source.where
    check_tensor_name(name, where)
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise UnusableInput(
            f"tensor {name!r} must have exactly dtype, shape and data_offsets", where=where, code="EH104"
        )
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape):
        raise UnusableInput(f"tensor {name!r} has the impossible shape {shape!r}", where=where, code="EH104")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise UnusableInput(f"tensor {name!r} has the impossible data_offsets {offsets!r}", where=where, code="EH104")
    if not isinstance(entry["dtype"], str):
        raise UnusableInput(f"tensor {name!r} has the impossible dtype {entry['dtype']!r}", where=where, code="EH104")
    info = TensorInfo(name, entry["dtype"], tuple(shape), source.name)
    try:
        needed = info.nbytes
    except UnusableInput as error:
        raise UnusableInput(f"tensor {name!r}: {error.what}", where=where, fix=error.fix, code="EH104") from None
    if offsets[1] - offsets[0] != needed:
        message = f"tensor {name!r} of type {info.dtype} and shape {shape} needs {needed} bytes"
        raise UnusableInput(f"{message} but is given {offsets[1] - offsets[0]}", where=where, code="EH104")
    return info, offsets[0], offsets[1]


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_cover(spans: Sequence[tuple[TensorInfo, int, int]], available: int, where: str) -> None:
    """Check that the tensors, in the order of their bytes, cover the `available` bytes exactly once."""
    position = 0
    for info, start, end in spans:
        if start != position:
            fault = "overlaps the one before it" if start < position else f"leaves a gap of {start - position} bytes"
            raise UnusableInput(f"tensor {info.name!r} {fault}", where=where, code="EH103")
        position = end
    if position > available:
        message = f"is truncated: {position - available} bytes of weights are missing"
        raise UnusableInput(message, where=where, fix="download it again", code="EH103")
    if position < available:
        raise UnusableInput(f"has {available - position} bytes after its last tensor", where=where, code="EH103")
