"""Cases as files: a fixture, what is changed in it, and the codes that `eaglehub validate` must raise, no others.

Keys of a case:

    about       what is wrong, in a line
    traps       which of the catalogued public reports it stands for
    base        fixture of `tests.drafters`
    config      dotted path to value; a null value is written as null
    unset       config paths to remove
    remove      tensors to remove
    rename      starts of tensor names, old to new
    tensors     name to changes, see `_changed`
    files       file name to text, or to changes of the bytes, see `_damage`
    drop_files  files to remove
    target      kind of `target_config`, and keys of it to change; `tensors` and `files` go beside it
    options     of the command line
    command     the command when it is not validate
    without     a package that is not installed
    raises      the codes
    exit        the exit code, 1 by default where something is raised
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import yaml
from safetensors.numpy import save_file

from tests.cli_runner import run
from tests.drafters import BROKEN, BUILDERS, broken, target_config
from tests.drafters.drafter import DTYPES, values
from tests.drafters.source import Source, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli_runner import Result

FOLDER = Path(__file__).parent.parent / "cases"
_TYPES = DTYPES | {"int64": np.dtype(np.int64), "int8": np.dtype(np.int8), "float8": np.dtype(ml_dtypes.float8_e4m3fn)}
_KEYS = {
    *("about", "traps", "base", "config", "unset", "remove", "rename", "tensors", "files", "drop_files", "target"),
    *("options", "command", "without", "raises", "exit"),
}


def load(kind: str) -> dict[str, dict[str, Any]]:
    """The cases of one folder by name."""
    cases = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / kind).glob("*"))}
    for name, case in cases.items():
        assert case.keys() <= _KEYS, f"{name}: unknown keys {case.keys() - _KEYS}"
    return cases


def run_case(case: dict[str, Any], folder: Path, *more: str) -> Result:
    """Build the case in `folder` and run the command on it."""
    drafter = build(case, folder / "drafter")
    options = [str(option) for option in case.get("options", ())]
    if "target" in case:
        options += ["--target", str(_target(dict(case["target"]), folder / "target"))]
    with _without(case.get("without")):
        return run(*case.get("command", ["validate"]), drafter, *options, *more)


@contextmanager
def _without(package: str | None) -> Iterator[None]:
    """As if the package were not installed."""
    module = sys.modules.get(package or "")
    if package:
        sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if package and module:
            sys.modules[package] = module
        elif package:
            del sys.modules[package]


def build(case: dict[str, Any], folder: Path) -> Path:
    """Write the case's drafter."""
    source = _source(case["base"])
    for path, value in case.get("config", {}).items():
        _put(source.config, path, value)
    for path in case.get("unset", ()):
        _put(source.config, path, None, remove=True)
    tensors = dict(source.tensors)
    for name in case.get("remove", ()):
        del tensors[name]
    for name, changes in case.get("tensors", {}).items():
        tensors[name] = _changed(tensors.get(name), name, changes, tensors)
    write(replace(source, tensors=_renamed(tensors, case.get("rename", {}))), folder)
    for name, change in case.get("files", {}).items():
        _damage(folder / name, change)
    for name in case.get("drop_files", ()):
        (folder / name).unlink()
    return folder


def _source(name: str) -> Source:
    """A fresh source: builders are partials of `_build` with the source's function as first argument."""
    if name in BROKEN:
        return broken.FIXTURES[name][0]()
    return BUILDERS[name].args[0]()  # type: ignore[attr-defined]


def _put(config: dict[str, Any], path: str, value: Any, *, remove: bool = False) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        config = config.setdefault(parent, {})
    if remove:
        del config[last]
    else:
        config[last] = value


def _renamed(tensors: dict[str, np.ndarray], names: dict[str, str]) -> dict[str, np.ndarray]:
    for old, new in names.items():
        tensors = {new + name.removeprefix(old) if name.startswith(old) else name: tensors[name] for name in tensors}
    return tensors


def _changed(
    array: np.ndarray | None, name: str, changes: dict[str, Any], tensors: dict[str, np.ndarray]
) -> np.ndarray:
    """One tensor after its changes, in the order given; `shape` makes a new one of type `dtype`, scaled by `times`."""
    if "shape" in changes:
        noise = values(name, tuple(changes["shape"]), "float32") * changes.get("times", 1)
        array = noise.astype(_TYPES[changes.get("dtype", "bfloat16")])
    assert array is not None, f"{name} is not there"
    array = array.copy()
    for change, value in changes.items():
        match change:
            case "fill":
                array[...] = value
            case "set":
                array.reshape(-1)[value[0]] = float(value[1]) if array.dtype.kind not in "iub" else value[1]
            case "rows":
                array = array[:value]
            case "columns":
                array = array[:, :value]
            case "dtype":
                array = array.astype(_TYPES[value])
            case "absolute":
                array = array + np.arange(len(array))
            case "gather":
                array = values(name, (160, *array.shape[1:]), "bfloat16")[tensors[value]]
    return array


def _damage(path: Path, change: Any) -> None:
    """Text replaces the file; `cut` bytes at the end, `append` bytes, `sparse` grow it to a size of zeros."""
    if isinstance(change, str):
        path.write_text(change, encoding="utf-8")
        return
    data = path.read_bytes() if path.exists() else b""
    data = data[: len(data) - change.get("cut", 0)] + b"\0" * change.get("append", 0)
    if "replace" in change:
        old, new = (part.encode() for part in change["replace"])
        assert old in data
        data = data.replace(old, new)
    path.write_bytes(data)
    if "sparse" in change:
        with path.open("r+b") as file:
            file.truncate(change["sparse"])


def _target(target: dict[str, Any], folder: Path) -> Path:
    tensors, files = target.pop("tensors", {}), target.pop("files", {})
    whole = target.pop("whole", {})
    target_config(target.pop("kind"), folder, **target)
    if whole:
        config = json.loads((folder / "config.json").read_text()) | whole
        (folder / "config.json").write_text(json.dumps(config))
    if tensors:
        arrays = {name: _changed(None, name, changes, {}) for name, changes in tensors.items()}
        save_file(arrays, folder / "model.safetensors")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder
