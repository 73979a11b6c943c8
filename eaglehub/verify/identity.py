"""What was verified: digests of the drafter and of its target, without a word about where they lay."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint.files import SourceFile, as_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from eaglehub.checkpoint import Checkpoint, TensorInfo
    from eaglehub.drafter.target import Target

_HUB_SNAPSHOT = re.compile(r"models--(?P<repo>[^/]+)/snapshots/(?P<revision>[0-9a-f]{40})$")
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
    files = checkpoint.hash_files()
    folder = hashlib.sha256("".join(f"{digest}  {file}\n" for file, digest in files.items()).encode())
    name, revision = _hub_name(checkpoint.path_of("config.json").parent)
    return {
        "name": name or checkpoint.name,
        "revision": revision,
        "digest": folder.hexdigest(),
        "config": without_local_paths(checkpoint.config),
        "tensors": [_describe_tensor(checkpoint, info) for info in checkpoint.tensors.values()],
    }


def describe_target(target: Target, folder: Path) -> dict[str, Any]:
    """Name, revision, digests of the small files that shape its answers, sizes of its weight files."""
    name, revision = _hub_name(folder)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        "name": name or target.name,
        "revision": revision,
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


def _hub_name(folder: Path) -> tuple[str | None, str | None]:
    """Repository and revision, when the folder is a snapshot in the Hugging Face cache."""
    match = _HUB_SNAPSHOT.search(folder.absolute().as_posix())
    return (match["repo"].replace("--", "/"), match["revision"]) if match else (None, None)


def _describe_tensor(checkpoint: Checkpoint, info: TensorInfo) -> dict[str, Any]:
    digest = hashlib.sha256()
    for chunk in checkpoint.chunks(info.name):
        digest.update(as_bytes(chunk).data)
    return {"name": info.name, "dtype": info.dtype, "shape": list(info.shape), "sha256": digest.hexdigest()}
