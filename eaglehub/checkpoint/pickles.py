"""Weights in PyTorch's pickle files, read without running any code they may carry. Needs torch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.dtypes import numpy_dtype
from eaglehub.checkpoint.files import describe_impostor
from eaglehub.checkpoint.header import TensorInfo, check_tensor_name, rows_per_chunk
from eaglehub.errors import EnvironmentProblem, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    import numpy.typing as npt

    from eaglehub.checkpoint.folder import File

_ZIP_MAGIC = b"PK\x03\x04"
_WRAPPERS = ("state_dict", "model")
_OLDEST_TORCH = (2, 6)  # before it, weights_only could be made to run code
_REFUSED_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
_TORCH_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}


class PickleStore:
    """The tensors of one pickle file, mapped into memory where the file allows it."""

    def __init__(self, source: File) -> None:
        torch = _torch(source.where)
        self._torch = torch
        self._values = _load(source, torch)
        names = {getattr(torch, attribute, None): name for name, attribute in _TORCH_NAMES.items()}
        self.metadata: dict[str, str] = {}
        self.tensors = {name: _info(name, value, names, source) for name, value in self._values.items()}

    def chunks(self, info: TensorInfo) -> Iterator[npt.NDArray[Any]]:
        """Blocks of rows of one tensor, made contiguous."""
        value = self._values[info.name].detach()
        rows = rows_per_chunk(info)
        for block in value.split(rows) if value.dim() and value.shape[0] else (value,):
            raw = block.contiguous().reshape(-1).view(self._torch.uint8).numpy()
            yield raw.view(numpy_dtype(info.dtype)).reshape(tuple(block.shape))


def _torch(where: str) -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise EnvironmentProblem(
            "reading PyTorch pickle files needs torch",
            where=where,
            fix="pip install 'eaglehub[train]', or convert to safetensors elsewhere",
        ) from error
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < _OLDEST_TORCH:
        raise EnvironmentProblem(
            f"torch {torch.__version__} cannot read pickle files safely", where=where, fix="install torch 2.6 or newer"
        )
    return torch  # type: ignore[no-any-return]


def _load(source: File, torch: ModuleType) -> dict[str, Any]:
    start = source.read(0, 512)
    if impostor := describe_impostor(start):
        raise UnusableInput(impostor.what, where=source.where, fix=impostor.fix, code="EH102")
    try:
        loaded = torch.load(source.path, map_location="cpu", weights_only=True, mmap=start.startswith(_ZIP_MAGIC))
    except Exception as error:
        raise _refusal(error, source.where) from error
    for wrapper in _WRAPPERS:
        if isinstance(loaded, dict) and isinstance(loaded.get(wrapper), dict):
            loaded = loaded[wrapper]
    return _state_dict(loaded, source.where, torch)


def _refusal(error: Exception, where: str) -> UnusableInput:
    if refused := _REFUSED_GLOBAL.search(str(error)):
        return UnusableInput(
            f"this pickle wants to run code ({refused[1].rstrip('.')}) and was not loaded",
            where=where,
            fix="get the weights as safetensors",
            code="EH108",
        )
    return UnusableInput(
        "is damaged or not a PyTorch file of weights", where=where, fix="download it again", code="EH108"
    )


def _state_dict(loaded: object, where: str, torch: ModuleType) -> dict[str, Any]:
    if not isinstance(loaded, dict):
        raise UnusableInput(f"holds a {type(loaded).__name__}, not named tensors", where=where, code="EH108")
    strangers = [str(name) for name, value in loaded.items() if not _is_plain(name, value, torch)]
    if strangers:
        listed = ", ".join(strangers[:3]) + (", ..." if len(strangers) > 3 else "")
        raise UnusableInput(f"holds entries that are not plain tensors: {listed}", where=where, code="EH108")
    return loaded


def _is_plain(name: object, value: Any, torch: ModuleType) -> bool:
    return (
        isinstance(name, str)
        and isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )


def _info(name: str, value: Any, names: Mapping[object, str], source: File) -> TensorInfo:
    check_tensor_name(name, source.where)
    if value.dtype not in names:
        raise UnusableInput(
            f"tensor {name!r} has the type {value.dtype}, which safetensors lacks", where=source.where, code="EH108"
        )
    return TensorInfo(name, names[value.dtype], tuple(value.shape), source.name)
