"""PyTorch pickle files are read as data; code in them does not run."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest

from eaglehub.checkpoint import open_checkpoint
from eaglehub.errors import EnvironmentProblem, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

torch = pytest.importorskip("torch")


class Touches:
    """Unpickling it carelessly creates a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


@pytest.fixture
def saved(folder: Callable[..., Path]) -> Callable[..., Path]:
    def save(value: object, name: str = "pytorch_model.bin", **options: Any) -> Path:
        path = folder({})
        torch.save(value, path / name, **options)
        return path

    return save


TENSORS = {
    "matrix": torch.arange(12, dtype=torch.bfloat16).reshape(3, 4),
    "turned": torch.arange(12, dtype=torch.float16).reshape(3, 4).T,
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 3, dtype=torch.int64),
    "mask": torch.tensor([True, False]),
    "fp8": torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    "learned": torch.nn.Parameter(torch.ones(2)),
}
TENSORS["tied"] = TENSORS["matrix"][1:]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"state_dict": x, "epoch": 3}, lambda x: {"model": x}])
def test_tensors_survive(saved: Callable[..., Path], zipped: bool, wrap: Callable[[object], object]) -> None:
    # The old format cannot hold the newest types.
    tensors = {name: tensor for name, tensor in TENSORS.items() if zipped or name != "fp8"}
    checkpoint = open_checkpoint(saved(wrap(tensors), _use_new_zipfile_serialization=zipped))
    assert list(checkpoint.tensors) == list(tensors)
    for name, expected in tensors.items():
        found = checkpoint.read(name)
        assert found.shape == tuple(expected.shape)
        assert found.tobytes() == expected.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def test_large_tensors_come_in_blocks(saved: Callable[..., Path]) -> None:
    tensor = torch.arange(3_000_000, dtype=torch.float32).reshape(3000, 1000)
    blocks = list(open_checkpoint(saved({"a": tensor}, "weights.pt")).chunks("a"))
    assert len(blocks) > 1
    assert all(block.nbytes <= 4 << 20 for block in blocks)


@pytest.mark.parametrize("plain", [True, False])
def test_code_is_refused_and_not_run(saved: Callable[..., Path], tmp_path: Path, plain: bool) -> None:
    value = {"a": Touches(tmp_path / "ran")}
    path = saved(value)
    if plain:
        (path / "pytorch_model.bin").write_bytes(pickle.dumps(value, protocol=2))
    with pytest.raises(UnusableInput, match=r"wants to run code \(posix\.mkdir\)"):
        open_checkpoint(path)
    assert not (tmp_path / "ran").exists()


BAD = {
    "stranger": ({"a": torch.ones(1), "step": 3}, "not plain tensors: step"),
    "sparse": ({"a": torch.eye(2).to_sparse()}, "not plain tensors: a"),
    "list": ([torch.ones(1)], "holds a list"),
    "name": ({"a/b": torch.ones(1)}, "not acceptable"),
    "complex": ({"a": torch.ones(1, dtype=torch.complex128)}, "complex128, which safetensors lacks"),
}


@pytest.mark.parametrize(("value", "message"), BAD.values(), ids=BAD)
def test_what_is_not_named_tensors_is_refused(saved: Callable[..., Path], value: object, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        open_checkpoint(saved(value))


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 cut"])
def test_damaged_files_are_refused(folder: Callable[..., Path], content: bytes) -> None:
    with pytest.raises(UnusableInput, match="damaged"):
        open_checkpoint(folder({"pytorch_model.bin": content}))


def test_without_a_safe_torch_the_way_out_is_named(saved: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved({"a": torch.ones(1)})
    monkeypatch.setattr(torch, "__version__", "2.5.1")
    with pytest.raises(EnvironmentProblem, match=r"2\.6 or newer"):
        open_checkpoint(path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EnvironmentProblem, match=r"eaglehub\[train\]"):
        open_checkpoint(path)
