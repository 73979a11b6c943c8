"""`scripts/gpu_check.sh`, on machines with as many GPUs as its `nvidia-smi` says, and an eaglehub that only reports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_check.sh"
EAGLEHUB = f"""#!{sys.executable}
import json, sys
options = dict(zip(sys.argv[1:], sys.argv[2:]))
file = next(value.removeprefix("json=") for value in sys.argv if value.startswith("json="))
failed = options["--runner"] == "v2" and options.get("--min-acceptance-length")
report = {{"verdict": "fail" if failed else "pass", "acceptance": {{"acceptance_length": 2.5}},
    "fast": [{{"speedup": {{"value": 2.03}}}}, {{"speedup": {{"value": 1.71}}}}]}}
open(file, "w").write(json.dumps(report))
sys.exit(1 if failed else 0)
"""


def check(folder: Path, gpus: int, *options: str) -> subprocess.CompletedProcess[str]:
    programs = folder / "bin"
    programs.mkdir()
    lines = "".join(f"echo 'GPU {number}: one'\n" for number in range(gpus))
    for name, text in {"nvidia-smi": f"#!/bin/sh\n{lines}", "eaglehub": EAGLEHUB}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    command = [SCRIPT, "drafter", "target", folder / "out", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("gpus", "runs"),
    [(3, ["v1", "v2", "v2-tp2"]), pytest.param(8, ["v1", "v2", "v2-tp4"], marks=pytest.mark.slow)],
)
def test_a_run_for_each_runner_and_one_split(tmp_path: Path, gpus: int, runs: list[str]) -> None:
    result = check(tmp_path, gpus)
    assert result.returncode == 0, result.stderr
    _, *rows = [line.split() for line in result.stdout.splitlines()]
    assert rows == [[run, "0", "pass", "2.500", "2.03,", "1.71"] for run in runs]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{run}.json" for run in runs}


def test_one_that_fails_fails_all(tmp_path: Path) -> None:
    result = check(tmp_path, 1, "--min-acceptance-length", "3")
    assert result.returncode == 1
    assert [line.split()[:3] for line in result.stdout.splitlines()[1:]] == [["v1", "0", "pass"], ["v2", "1", "fail"]]


def test_without_a_gpu(tmp_path: Path) -> None:
    result = check(tmp_path, 0)
    assert (result.returncode, result.stdout) == (4, "")
    assert "no GPU found" in result.stderr
