"""Finds the data folders `schemas/` and `templates/`, and reads the YAML files that stand beside the code.

In a wheel they are inside the package; in an editable install they stand beside it, at the repository's root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eaglehub.errors import EnvironmentProblem

_PACKAGE = Path(__file__).parent


def resource(folder: str, name: str = "") -> Path:
    """Path of `folder/name`, or of the folder itself.

    Raises:
        EnvironmentProblem: the installation lacks the folder.
    """
    for root in (_PACKAGE, _PACKAGE.parent):
        if (root / folder).is_dir():
            return root / folder / name
    raise EnvironmentProblem(f"this installation has no {folder}/ folder", fix="reinstall eaglehub")


def read_yaml(path: Path) -> Any:
    """The one document of a YAML file of ours, by libyaml where PyYAML has it, which is several times faster."""
    import yaml

    return yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
