"""What names a drafter on the Hub, and what it then is: repositories, revisions, folders, and paths that win."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from eaglehub.checkpoint.hub import HubName, hub_name
from eaglehub.errors import UsageProblem
from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.hub.drafters import head

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hub import LoopbackHub


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("org/repo", HubName("org/repo")),
        ("org/repo@v1.0", HubName("org/repo", "v1.0")),
        ("org/repo@refs/pr/3", HubName("org/repo", "refs/pr/3")),
        ("hf://org/repo", HubName("org/repo")),
        ("hf://models/org/repo", HubName("org/repo")),
        ("hf://org/repo@main/sub/folder", HubName("org/repo", "main", "sub/folder")),
        ("hf://org/repo/sub/", HubName("org/repo", None, "sub")),
        ("hf://org/repo@refs/pr/3/sub", HubName("org/repo", "refs/pr/3", "sub")),
        *((text, None) for text in ("repo", "./org/repo", "/org/repo", "org/repo/", "../repo", "org/a/b", "a/b.json")),
        *((text, None) for text in ("org/config.json", "org/model.safetensors", "~/repo", "org/re po", "")),
    ],
)
def test_names(text: str, name: HubName | None) -> None:
    assert hub_name(text) == name


@pytest.mark.parametrize("text", ["hf://", "hf://org", "hf://datasets/org/repo@v1@v2", "hf://org/re po"])
def test_what_starts_like_a_name_must_be_one(text: str) -> None:
    with pytest.raises(UsageProblem, match="no model repository"):
        hub_name(text)


@pytest.mark.parametrize("revision", ["v1", "refs/pr/1", "branch"])
def test_revisions(hub: LoopbackHub, drafter: Path, revision: str) -> None:
    repo = hub.repos["acme/drafter"]
    repo.refs |= dict.fromkeys(("refs/tags/v1", "refs/pr/1", "refs/heads/branch"), repo.head().oid)
    asked = head(hub)
    hub.add("acme/drafter", {"config.json": b"broken"})

    assert run("inspect", f"acme/drafter@{revision}", "--json").json()["revision"] == asked
    assert run("inspect", f"hf://acme/drafter@{asked[:10]}").exit_code == 0
    assert run("inspect", "acme/drafter").exit_code == 3


def test_subfolders(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    hub.add("acme/many", {f"runs/last/{file.name}": file.read_bytes() for file in drafter.iterdir()})

    assert run("inspect", "hf://acme/many/runs/last", "--json").json()["name"] == "acme/many/runs/last"
    assert run("convert", "hf://acme/many@main/runs/last/", tmp_path / "out").exit_code == 0
    missing = run("inspect", "hf://acme/many/runs/first")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "acme/many: has no folder 'runs/first'" in missing.stderr


def test_a_local_path_wins(hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(drafter.parent)
    here = build("vllm-3", drafter.parent / "acme/drafter").path

    result = run("inspect", "acme/drafter", "--json")
    assert (result.json()["revision"], hub.log) == (None, [])
    assert "acme/drafter is taken from this machine; hf://acme/drafter would be the Hub's" in result.stderr
    assert run("inspect", "hf://acme/drafter", "--json").json()["revision"] == head(hub)
    assert run("--quiet", "inspect", "hf://acme/drafter").stderr == ""
    assert here.is_dir()


def test_a_renamed_repository_says_its_new_name(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    hub.rename("acme/drafter", "acme/eagle")

    result = run("inspect", "acme/drafter", "--json")

    assert (result.exit_code, result.json()["name"]) == (0, "acme/eagle")
    assert "acme/drafter was renamed: it is acme/eagle now" in result.stderr
    assert run("convert", "acme/drafter", tmp_path / "out").exit_code == 0


def test_the_client_is_never_imported_for_a_local_path(drafter: Path, tmp_path: Path) -> None:
    target = target_config("llama", tmp_path / "target")
    code = (
        "import sys; from eaglehub.cli.main import main; "
        f"code = main(['validate', {str(drafter)!r}, '--target', {str(target)!r}]); "
        "sys.exit(code or int('huggingface_hub' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
