"""Which files of a folder hold the weights: the choice an engine would make."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eaglehub.checkpoint.files import unreadable
from eaglehub.checkpoint.folder import Folder, LocalFolder
from eaglehub.checkpoint.jsonfile import parse_json_object
from eaglehub.errors import UnusableInput

PICKLE_SUFFIXES = (".bin", ".pt")
SAFETENSORS = ".safetensors"
CONFIG = "config.json"
# What trainers leave beside weights under the same suffixes.
NOT_WEIGHTS = frozenset(
    {"adapter_model.safetensors", "adapter_model.bin", "training_args.bin", "optimizer.bin", "optimizer.pt"}
    | {"scheduler.pt", "scaler.pt", "rng_state.pt"}
)
# Tried in this order; an index goes before the single file, as engines load only what an index names.
_PREFERRED = ("model.safetensors", "pytorch_model.bin")
_UNWRITABLE_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a checkpoint.

    Attributes:
        folder: where they are.
        name: the folder's.
        weights: files that hold the tensors, in reading order.
        others: every other regular file except config.json and the index.
        weight_map: tensor to file, as the index says; None without an index.
        index: the index file's name, empty without one.
    """

    folder: Folder
    name: str
    weights: tuple[str, ...]
    others: tuple[str, ...]
    weight_map: dict[str, str] | None = None
    index: str = ""


def find_layout(place: Path | Folder) -> Layout:
    """The layout of the checkpoint there: in a folder, or one weight file with its config.json beside it.

    Raises:
        UnusableInput: absent, unreadable, without weights or config.json, or an index that is not usable.
    """
    if not isinstance(place, Path):
        return _folder_layout(place)
    given = str(place)
    path = Path(os.path.abspath(place))  # noqa: PTH100 - resolve() would follow links and change the name
    try:
        if path.is_dir():
            return _folder_layout(LocalFolder(path))
        if not path.exists():
            raise UnusableInput("does not exist", where=given)
        is_weights = path.is_file() and path.suffix in (SAFETENSORS, *PICKLE_SUFFIXES)
    except OSError as error:
        raise unreadable(error, given) from error
    if not is_weights:
        raise UnusableInput(
            "is not a checkpoint", where=given, fix="give a folder, or a .safetensors, .bin or .pt file"
        )
    folder = LocalFolder(path.parent)
    return _layout(folder, _list_files(folder), (path.name,))


def _folder_layout(folder: Folder) -> Layout:
    files = _list_files(folder)
    if not files:
        raise UnusableInput("the folder has no files", where=folder.name)
    for single in _PREFERRED:
        index = f"{single}.index.json"
        if index in files:
            weight_map = _weight_map(folder.read(index), f"{folder.name}/{index}", files)
            return _layout(folder, files, tuple(sorted(set(weight_map.values()))), weight_map, index)
        if single in files:
            return _layout(folder, files, (single,))
        if loose := _with_suffix(files, (Path(single).suffix,)):
            return _layout(folder, files, loose)
    if loose := _with_suffix(files, PICKLE_SUFFIXES):
        return _layout(folder, files, loose)
    raise UnusableInput("the folder has no weights", where=folder.name, fix="expected model.safetensors")


def _with_suffix(files: tuple[str, ...], suffixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(file for file in files if file.endswith(suffixes) and file not in NOT_WEIGHTS)


def _layout(
    folder: Folder,
    files: tuple[str, ...],
    weights: tuple[str, ...],
    weight_map: dict[str, str] | None = None,
    index: str = "",
) -> Layout:
    if CONFIG not in files:
        raise UnusableInput("there is no config.json beside the weights", where=folder.name)
    others = tuple(file for file in files if file not in {*weights, CONFIG, index})
    return Layout(folder, folder.name, weights, others, weight_map, index)


def _list_files(folder: Folder) -> tuple[str, ...]:
    names = tuple(folder.sizes())
    for name in names:
        if _UNWRITABLE_NAME.search(name):
            raise UnusableInput(f"the file name {name!r} is not plain text", where=folder.name)
    return names


def _weight_map(data: bytes, where: str, files: tuple[str, ...]) -> dict[str, str]:
    index: dict[str, Any] = parse_json_object(data, where)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise UnusableInput("weight_map must map tensor names to file names", where=where, code="EH106")
    if not weight_map:
        raise UnusableInput("weight_map is empty", where=where, code="EH106")
    for file in sorted(set(weight_map.values())):
        if Path(file).name != file or "\\" in file or file == "..":
            raise UnusableInput(f"weight_map names {file!r}, which is not a plain file name", where=where, code="EH106")
        if file not in files:
            raise UnusableInput(
                f"weight_map names {file}, which is missing", where=where, fix="download it", code="EH106"
            )
    return weight_map
