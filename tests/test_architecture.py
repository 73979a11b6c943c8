"""Rooms import downwards only, and heavy or risky packages stay in the rooms that need them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import eaglehub

PACKAGE = Path(eaglehub.__file__).parent

# From the top down; a room may import those after it, and itself.
ROOMS = [
    "__main__",
    "cli",
    "pages",
    "recipe",
    "publish",
    "card",
    "verify",
    "finetune",
    "upgrade",
    "evaluate",
    "scoring",
    "features",
    "validate",
    "inspect",
    "diff",
    "environment",
    "convert",
    "serving",
    "reading",
    "plan",
    "engines",
    "prompts",
    "formats",
    "drafter",
    "checkpoint",
    "report",
    "plugins",
    "resources",
    "errors",
]
# Rooms made to be built on: any module of theirs may be imported from above.
LIBRARIES = {
    *("scoring", "reading", "plan", "engines", "prompts", "formats", "drafter", "checkpoint", "report"),
    *("plugins", "resources", "errors"),
}
# Every other room is used only through these modules: its package, or modules by name where the package file has to
# stay light: that of `verify` imports nothing, as its worker runs where eaglehub's dependencies are not.
PUBLIC: dict[str, set[str]] = {
    "pages": set(),
    "recipe": set(),
    "publish": set(),
    "card": {"eaglehub.card"},
    "verify": {f"eaglehub.verify.{name}" for name in ("baseline", "metrics", "report")},
    "finetune": set(),
    "upgrade": set(),
    "evaluate": set(),
    "features": {"eaglehub.features", "eaglehub.features.choices", "eaglehub.features.encode"},
    "validate": {"eaglehub.validate"},
    "inspect": set(),
    "diff": {"eaglehub.diff"},
    "environment": {"eaglehub.environment.hardware"},
    "convert": {"eaglehub.convert"},
    "serving": {"eaglehub.serving"},
}
HOME = {
    "click": {"cli"},
    "torch": {"checkpoint", "drafter", "features", "scoring", "finetune", "upgrade", "verify"},
    "vllm": {"features", "verify"},
    "huggingface_hub": {"checkpoint", "publish"},
    "transformers": {"drafter", "features"},
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports(path: Path) -> set[str]:
    """Modules that a file imports anywhere, as full names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            found.add(node.module or "")
    return found


def names(path: Path) -> str:
    relative = path.relative_to(PACKAGE).with_suffix("")
    return relative.parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path) -> None:
    room = names(path)
    if room == "__init__":
        return
    below = ROOMS[ROOMS.index(room) :]

    used = {room_of(module) for module in imports(path) if module.startswith("eaglehub.")}

    assert used <= {*below, ""}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_stay_in_their_rooms(path: Path) -> None:
    used = {module.split(".")[0] for module in imports(path)}

    assert {package for package in used & set(HOME) if names(path) not in HOME[package]} == set()


def test_every_room_says_what_of_it_is_public() -> None:
    assert {"__main__", "cli"} | LIBRARIES | PUBLIC.keys() == set(ROOMS)
    assert not LIBRARIES & PUBLIC.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_are_used_through_what_is_public(path: Path) -> None:
    """The command line alone may look further: it starts what they do."""
    for module in imports(path):
        room = room_of(module)
        if room in PUBLIC and names(path) not in (room, "cli"):
            assert module in PUBLIC[room]
