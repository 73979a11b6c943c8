"""What is written is what the official library writes and reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from eaglehub.checkpoint import dtype_name, nonfinite, numpy_dtype, open_checkpoint, write_checkpoint
from eaglehub.checkpoint.files import CHUNK_BYTES
from tests.checkpoint.helpers import CONFIG, DTYPES, output, values

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = {"scalar": (), "one": (1,), "odd": (3, 5, 7), "empty": (0, 4), "hollow": (4, 0), "matrix": (33, 129)}


def everything() -> dict[str, np.ndarray]:
    return {f"{dtype}.{kind}": values(dtype, shape) for dtype in DTYPES for kind, shape in SHAPES.items()}


def test_every_type_and_shape_survives(tmp_path: Path) -> None:
    arrays = everything()
    write_checkpoint(tmp_path / "out", [output(*item) for item in arrays.items()], {"config.json": CONFIG})
    checkpoint = open_checkpoint(tmp_path / "out")
    assert checkpoint.tensors.keys() == arrays.keys()
    for name, array in arrays.items():
        found = checkpoint.read(name)
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
        info = checkpoint.tensors[name]
        assert (info.size, info.nbytes, info.dtype) == (array.size, array.nbytes, dtype_name(array.dtype))


def test_bytes_are_those_of_the_official_library(tmp_path: Path) -> None:
    arrays = {name: array for name, array in everything().items() if not name.startswith("F8_E8M0")}
    write_checkpoint(tmp_path / "out", [output(*item) for item in sorted(arrays.items())], {"config.json": CONFIG})
    official = safetensors.numpy.save(arrays, {"format": "pt"})
    assert (tmp_path / "out/model.safetensors").read_bytes() == official


def test_torch_loads_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    arrays = {dtype: values(dtype, (5, 3)) for dtype in DTYPES}
    write_checkpoint(tmp_path / "out", [output(*item) for item in arrays.items()], {"config.json": CONFIG})
    loaded = load_file(tmp_path / "out/model.safetensors")
    for name, array in arrays.items():
        assert loaded[name].contiguous().view(torch.uint8).numpy().tobytes() == array.tobytes()


def test_large_tensors_come_in_bounded_blocks_of_rows(tmp_path: Path) -> None:
    array = values("BF16", (5000, 1001))
    write_checkpoint(tmp_path / "out", [output("a", array, rows=701)], {"config.json": CONFIG})
    blocks = list(open_checkpoint(tmp_path / "out").chunks("a"))
    assert len(blocks) > 1
    assert all(block.nbytes <= CHUNK_BYTES and block.shape[1:] == (1001,) for block in blocks)
    assert np.concatenate(blocks).tobytes() == array.tobytes()


def test_every_value_is_watched_and_counted(tmp_path: Path) -> None:
    arrays = {"a": values("F32", (2000, 3001)), "b": values("U8", (4097,))}
    seen: dict[str, int] = {}
    done: list[int] = []
    write_checkpoint(
        tmp_path / "out",
        [output(name, array, rows=500) for name, array in arrays.items()],
        {"config.json": CONFIG},
        watch=lambda name, chunk: seen.update({name: seen.get(name, 0) + chunk.size}),
        progress=done.append,
    )
    assert safetensors.numpy.load_file(tmp_path / "out/model.safetensors")["a"].tobytes() == arrays["a"].tobytes()
    assert seen == {name: array.size for name, array in arrays.items()}
    assert sum(done) == sum(array.nbytes for array in arrays.values())


def test_shards_have_the_index_that_readers_expect(tmp_path: Path) -> None:
    arrays = {f"t{i}": values("F32", (100,), seed=i) for i in range(5)} | {"big": values("F32", (1000,))}
    tensors = [output(*item) for item in arrays.items()]
    write_checkpoint(tmp_path / "out", tensors, {"config.json": CONFIG}, max_shard_size=900)
    index = json.loads((tmp_path / "out/model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 6000}
    assert index["weight_map"]["big"] == "model-00004-of-00004.safetensors"
    checkpoint = open_checkpoint(tmp_path / "out")
    assert checkpoint.weight_files == tuple(f"model-0000{i}-of-00004.safetensors" for i in (1, 2, 3, 4))
    assert checkpoint.index_file == "model.safetensors.index.json"
    assert checkpoint.metadata == {"format": "pt"}
    for name, array in arrays.items():
        with safetensors.safe_open(tmp_path / "out" / index["weight_map"][name], "numpy") as file:
            assert np.array_equal(file.get_tensor(name), array)
        assert np.array_equal(checkpoint.read(name), array)


def test_other_files_hashes_and_late_files(tmp_path: Path) -> None:
    import hashlib

    (tmp_path / "LICENSE").write_text("free")
    write_checkpoint(
        tmp_path / "out",
        [output("a", values("F16", (3,)))],
        {"config.json": CONFIG, "LICENSE": tmp_path / "LICENSE"},
        late_files=lambda: {"eaglehub.json": b"{}"},
    )
    checkpoint = open_checkpoint(tmp_path / "out/model.safetensors")
    assert checkpoint.name == "out"
    assert checkpoint.other_files == ("LICENSE", "eaglehub.json")
    assert checkpoint.path_of("LICENSE").read_text() == "free"
    assert checkpoint.config_bytes == CONFIG
    assert checkpoint.hash_files() == {
        name: hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest()
        for name in ("config.json", "model.safetensors")
    }


@pytest.mark.parametrize("dtype", [*DTYPES, "F8_E4M3FNUZ", "F8_E5M2FNUZ"])
def test_nonfinite_agrees_with_numpy_on_every_pattern(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    patterns = np.random.default_rng(0).integers(0, 256, (4096, kind.itemsize), np.uint8)
    if kind.itemsize <= 2:
        patterns = np.arange(256**kind.itemsize, dtype=f"u{kind.itemsize}").view(np.uint8)
    numbers = patterns.reshape(-1).view(kind)
    special = (
        [np.inf, -np.inf, np.nan, -np.nan, 0.0, -1.0] if dtype[0] in "FCB" and dtype not in ("BOOL", "F8_E8M0") else []
    )
    numbers = np.concatenate([numbers, np.array(special, np.float32).astype(kind)])
    with np.errstate(all="ignore"):
        exact = numbers.astype(np.complex128 if dtype == "C64" else np.float64)
    for number, reference in zip(numbers[-300:], exact[-300:], strict=True):
        assert nonfinite(np.array([0, number], kind) if dtype != "F8_E8M0" else np.array([number])) == (
            not np.isfinite(reference)
        )


def test_nonfinite_of_every_half_pattern_at_once() -> None:
    for dtype in ("F16", "BF16"):
        numbers = np.arange(65536, dtype=np.uint16).view(numpy_dtype(dtype))
        finite = np.isfinite(numbers.astype(np.float32))
        assert not nonfinite(numbers[finite])
        assert all(nonfinite(numbers[i : i + 1]) for i in np.flatnonzero(~finite))
        assert not nonfinite(numbers[:0])
