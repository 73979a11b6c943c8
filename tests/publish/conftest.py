"""A converted drafter with a report of vLLM that fits it, and ways to publish it to the loopback Hub."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eaglehub.card.charts import ACCEPTANCE
from tests.cli_runner import Result, run
from tests.drafters import build, target_config
from tests.verify.conftest import Bench

if TYPE_CHECKING:
    from tests.hub import LoopbackHub

REPO, TARGET = "tester/drafter", "acme/target"
Publish = Callable[..., Result]
_sleep = time.sleep


@pytest.fixture(scope="session")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Converted, and verified in a stand-in for vLLM; not to be changed."""
    folder = tmp_path_factory.mktemp("verified")
    target_config("llama", folder / "target")
    build("specforge", folder / "source")
    assert run("convert", folder / "source", folder / "drafter").exit_code == 0
    assert Bench(folder).verify("good", "--select", "lossless", "--select", "speculating").exit_code == 0
    return folder / "drafter"


@pytest.fixture
def drafter(verified: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(verified, tmp_path / "drafter"))


@pytest.fixture
def publish(hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Runs the command on `drafter`, without a question, with the target on the Hub; waits are short."""
    monkeypatch.setattr("eaglehub.publish.commit.PAUSES", (0.0, 0.0))
    monkeypatch.setattr("time.sleep", lambda seconds: _sleep(min(seconds, 0.05)))
    # Drawing takes longer than all the rest.
    monkeypatch.setattr("eaglehub.card.charts.draw_charts", lambda _: {ACCEPTANCE: b"a picture"})
    hub.add(TARGET, {"config.json": b"{}"})
    hub.clear_log()

    def _publish(*args: str | Path, repo: str = REPO) -> Result:
        fixed = ("--yes", "--license", "apache-2.0", "--base-model", TARGET)
        return run("publish", drafter, repo, *fixed, *args)

    return _publish
