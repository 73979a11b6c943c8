"""The hook as people get it: pre-commit installs it from a repository and stops a commit at the finding's line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from tests.validate.cases import build

ROOT = Path(__file__).parents[2]
PRODUCT = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "eaglehub", "schemas", "templates")
# No network: what the hook's environment needs is lent by this one.
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PYTHONPATH": sysconfig.get_path("purelib"),
}
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *AUTHOR, *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def product(folder: Path) -> str:
    """Commit what the hook needs of this repository; returns the commit."""
    folder.mkdir()
    for name in PRODUCT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as it is")
    return git(folder, "rev-parse", "HEAD")


def pre_commit(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | OFFLINE | {"PRE_COMMIT_HOME": str(cache)}
    command = [sys.executable, "-m", "pre_commit", "run"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_bad_drafter_is_not_committed(tmp_path: Path) -> None:
    revision = product(tmp_path / "product")
    mine = tmp_path / "mine"
    bad = build({"base": "vllm-3", "config": {"auto_map": {"AutoConfig": "x|y.Z"}}}, mine / "drafters" / "bad one")
    build({"base": "vllm-3"}, mine / "drafters" / "good")
    hooks = [{"id": "eaglehub-validate"}]
    config = {"repos": [{"repo": str(tmp_path / "product"), "rev": revision, "hooks": hooks}]}
    (mine / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(mine, "init", "--quiet")
    git(mine, "add", "--all")
    refused = pre_commit(mine, tmp_path / "cache")

    assert refused.returncode == 1, refused.stdout + refused.stderr
    lines = (bad / "config.json").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if '"auto_map"' in line)
    assert f"drafters/bad one/config.json:{number}: error EH901 auto_map names code" in refused.stdout
    assert "drafters/good" not in refused.stdout

    build({"base": "vllm-3"}, mine / "drafters" / "bad one")
    git(mine, "add", "--all")

    assert pre_commit(mine, tmp_path / "cache").returncode == 0
