"""What was verified: digests of the drafter and of its target, without a word about where they lay."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.checkpoint.files import SourceFile, as_bytes
from eaglehub.checkpoint.hashing import folder_digest
from eaglehub.convert import PROVENANCE_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.checkpoint import Checkpoint, TensorInfo
    from eaglehub.drafter.target import Target

_LOCAL_PATH = re.compile(r"^(?:/|~|\.{1,2}/|[A-Za-z]:[\\/]|file:)")
_IDENTIFYING = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
_WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")


def describe_drafter(checkpoint: Checkpoint) -> dict[str, Any]:
    """Name, revision, config, a SHA-256 for each tensor, and one of the folder: of config.json and all weight files."""
    return {
        "name": checkpoint.name,
        "revision": checkpoint.revision,
        "digest": folder_digest(checkpoint.hash_files()),
        "config": without_local_paths(checkpoint.config),
        "tensors": [_describe_tensor(checkpoint, info) for info in checkpoint.tensors.values()],
    }


def written_config(folder: Path) -> dict[str, Any] | None:
    """The config that eaglehub wrote with these weights, as `eaglehub.json` beside them has it; None without one."""
    file = folder / PROVENANCE_FILE
    written = read_json_object(file).get("config") if file.is_file() else None
    return without_local_paths(written) if isinstance(written, dict) else None


def describe_target(target: Target, folder: Path) -> dict[str, Any]:
    """Name, revision, digests of the small files that shape its answers, sizes of its weight files."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        "name": target.name,
        "revision": target.revision,
        "architectures": list(target.architectures),
        "files": [
            {"name": path.name, "sha256": SourceFile.at(path, path.name).sha256()}
            for path in files
            if path.name in _IDENTIFYING
        ],
        "weights": [
            {"name": path.name, "bytes": path.stat().st_size} for path in files if path.name.endswith(_WEIGHTS)
        ],
    }


def without_local_paths(value: Any) -> Any:
    """The same JSON value with every text that is a path of this machine left empty."""
    match value:
        case dict():
            return {key: without_local_paths(item) for key, item in value.items()}
        case list():
            return [without_local_paths(item) for item in value]
        case str() if _LOCAL_PATH.match(value):
            return ""
    return value


def _describe_tensor(checkpoint: Checkpoint, info: TensorInfo) -> dict[str, Any]:
    digest = hashlib.sha256()
    for chunk in checkpoint.chunks(info.name):
        digest.update(as_bytes(chunk).data)
    return {"name": info.name, "dtype": info.dtype, "shape": list(info.shape), "sha256": digest.hexdigest()}
