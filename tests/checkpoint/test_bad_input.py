"""Every malformed checkpoint is refused with one line that says what is wrong."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from eaglehub.checkpoint import open_checkpoint
from eaglehub.errors import UnusableInput
from tests.checkpoint.helpers import raw_safetensors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
WEIGHTS = raw_safetensors({"a": GOOD}, b"1234")
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


def tensor(**changes: object) -> bytes:
    return raw_safetensors({"a": {**GOOD, **changes}}, b"1234")


def index(**weight_map: object) -> bytes:
    return json.dumps({"weight_map": weight_map}).encode()


def two(second_start: int, second_end: int, data: bytes) -> bytes:
    size = second_end - second_start
    second = {"dtype": "U8", "shape": [size], "data_offsets": [second_start, second_end]}
    return raw_safetensors({"a": GOOD, "b": second}, data)


BAD_WEIGHTS = {
    "lfs": (LFS, "git lfs pull"),
    "html": (b"<!DOCTYPE html><html>", "HTML page"),
    "empty": (b"", "only 0 bytes"),
    "short": (b"abc", "only 3 bytes"),
    "huge-header": (b"\xff" * 20, "header would be over 100 MB"),
    "cut-header": ((1000).to_bytes(8, "little") + b"{}", "ends inside its header"),
    "not-json": (raw_safetensors(b"{nope}"), "not valid JSON"),
    "not-object": (raw_safetensors([]), "header is not JSON"),
    "not-utf8": (raw_safetensors(b'{"\xff": 1}'), "not UTF-8"),
    "twice": (raw_safetensors(b'{"a": 1, "a": 2}'), "'a' twice"),
    "entry": (raw_safetensors({"a": []}), "must have exactly dtype"),
    "extra-field": (tensor(more=1), "must have exactly dtype"),
    "dtype": (tensor(dtype="F4"), "unknown tensor type 'F4'"),
    "dtype-kind": (tensor(dtype=[1]), "impossible dtype"),
    "shape-negative": (tensor(shape=[-4]), "impossible shape"),
    "shape-bool": (tensor(shape=[True]), "impossible shape"),
    "shape-float": (tensor(shape=[4.0]), "impossible shape"),
    "offsets-back": (tensor(data_offsets=[4, 0]), "impossible data_offsets"),
    "offsets-three": (tensor(data_offsets=[0, 2, 4]), "impossible data_offsets"),
    "size": (tensor(shape=[5]), "needs 5 bytes but is given 4"),
    "overlap": (two(2, 6, b"123456"), "overlaps"),
    "gap": (two(6, 8, b"12345678"), "gap of 2 bytes"),
    "truncated": (WEIGHTS[:-1], "truncated: 1 bytes of weights are missing"),
    "trailing": (WEIGHTS + b"x", "1 bytes after its last tensor"),
    "metadata": (raw_safetensors({"__metadata__": {"a": 1}}), "__metadata__ must map"),
    "no-tensors": (raw_safetensors({}), "hold no tensors"),
    "name-empty": (raw_safetensors({"": GOOD}, b"1234"), "not acceptable"),
    "name-nul": (raw_safetensors({"a\0": GOOD}, b"1234"), "not acceptable"),
    "name-up": (raw_safetensors({"..": GOOD}, b"1234"), "not acceptable"),
    "name-slash": (raw_safetensors({"a/b": GOOD}, b"1234"), "not acceptable"),
    "name-backslash": (raw_safetensors({"a\\b": GOOD}, b"1234"), "not acceptable"),
    "surrogate": (raw_safetensors({"\ud800": GOOD}, b"1234"), "surrogate"),
}
BAD_CONFIGS = {
    "absent": (None, "no config.json"),
    "lfs": (LFS, "git lfs pull"),
    "list": (b"[]", "must hold a JSON object"),
    "nan": (b'{"a": NaN}', "NaN"),
    "infinity": (b'{"a": -Infinity}', "-Infinity"),
    "overflow": (b'{"a": 1e999}', "too large for a float"),
    "digits": (b'{"a": ' + b"9" * 5000 + b"}", "too large for an integer"),
    "twice": (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' twice"),
    "latin": ('{"a": "é"}'.encode("latin-1"), "not UTF-8"),
    "bom": (b"\xef\xbb\xbf{}", "not valid JSON"),
    "deep": (b'{"a":' * 100 + b"1" + b"}" * 100, "levels deep"),
    "very-deep": (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "deep"),
    "cut": (b'{"a": ', "not valid JSON"),
    "empty": (b"", "not valid JSON"),
}
BAD_FOLDERS: dict[str, tuple[dict[str, bytes | None], str]] = {
    "no-files": ({"config.json": None}, "no files"),
    "no-weights": ({}, "no weights"),
    "adapter": ({"adapter_model.safetensors": WEIGHTS}, "no weights"),
    "optimizer": ({"optimizer.pt": b"", "training_args.bin": b""}, "no weights"),
    "index-map": ({"model.safetensors.index.json": b'{"weight_map": []}'}, "weight_map must map"),
    "index-empty": ({"model.safetensors.index.json": index()}, "weight_map is empty"),
    "shard-missing": ({"model.safetensors.index.json": index(a="x.safetensors")}, "x.safetensors, which is missing"),
    "shard-up": ({"model.safetensors.index.json": index(a="../x.safetensors")}, "not a plain file name"),
    "shard-dots": ({"model.safetensors.index.json": index(a="..")}, "not a plain file name"),
    "tensor-missing": (
        {"model.safetensors.index.json": index(a="x.safetensors", b="x.safetensors"), "x.safetensors": WEIGHTS},
        "not in their files: b",
    ),
    "tensor-extra": (
        {"model.safetensors.index.json": index(a="x.safetensors"), "x.safetensors": two(4, 5, b"12345")},
        "in the files: b",
    ),
    "tensor-twice": ({"x.safetensors": WEIGHTS, "y.safetensors": WEIGHTS}, "in both x.safetensors and y.safetensors"),
}


def refusal(path: Path) -> str:
    with pytest.raises(UnusableInput) as caught:
        open_checkpoint(path)
    line = str(caught.value)
    assert caught.value.exit_code == 3
    assert "\n" not in line
    assert len(line) < 500
    return line


@pytest.mark.parametrize(("content", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_weights(folder: Callable[..., Path], content: bytes, message: str) -> None:
    line = refusal(folder({"model.safetensors": content}))
    assert message in line
    assert line.startswith("drafter")


@pytest.mark.parametrize(("content", "message"), BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_config(folder: Callable[..., Path], content: bytes | None, message: str) -> None:
    assert message in refusal(folder({"model.safetensors": WEIGHTS, "config.json": content}))


@pytest.mark.parametrize(("files", "message"), BAD_FOLDERS.values(), ids=BAD_FOLDERS)
def test_folder(folder: Callable[..., Path], files: dict[str, bytes | None], message: str) -> None:
    assert message in refusal(folder(files))


def test_paths(folder: Callable[..., Path], tmp_path: Path) -> None:
    path = folder({"model.safetensors": WEIGHTS, "README.md": b""})
    assert "does not exist" in refusal(tmp_path / "absent")
    assert "is not a checkpoint" in refusal(path / "README.md")
    assert open_checkpoint(f"{path}/../drafter").name == "drafter"


def test_unreadable_weights(folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    path = folder({"model.safetensors": WEIGHTS})
    monkeypatch.setattr(os, "open", refuse)
    assert "Permission denied" in refusal(path)


def test_the_file_an_engine_would_load_is_chosen(folder: Callable[..., Path]) -> None:
    path = folder(
        {
            "model.safetensors": WEIGHTS,
            "pytorch_model.bin": b"",
            "other.safetensors": b"",
            "model.safetensors.index.json": None,
        }
    )
    assert open_checkpoint(path).weight_files == ("model.safetensors",)
    assert open_checkpoint(path).other_files == ("other.safetensors", "pytorch_model.bin")
    (path / "x.safetensors").write_bytes(WEIGHTS)
    (path / "model.safetensors.index.json").write_bytes(index(a="x.safetensors"))
    assert open_checkpoint(path).weight_files == ("x.safetensors",)


def test_a_file_that_changes_while_read_is_refused(folder: Callable[..., Path]) -> None:
    path = folder({"model.safetensors": WEIGHTS})
    checkpoint = open_checkpoint(path)
    (path / "model.safetensors").write_bytes(WEIGHTS + b"x")
    for read in (lambda: checkpoint.read("a"), checkpoint.hash_files):
        with pytest.raises(UnusableInput, match="changed while it was being read"):
            read()
