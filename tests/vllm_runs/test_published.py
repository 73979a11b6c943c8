"""A real drafter, published and downloaded again, is what vLLM served before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import snapshot_download

from tests.cli_runner import run

if TYPE_CHECKING:
    from tests.hub import LoopbackHub
    from tests.vllm_runs.conftest import Convert, Serve

pytestmark = pytest.mark.vllm

REPO, TARGET = "tester/smollm2-eagle3", "acme/target"


def test_what_comes_back_from_the_hub_drafts_as_before(
    shared: Path, convert: Convert, serve: Serve, hub: LoopbackHub
) -> None:
    hub.add(TARGET, {"config.json": b"{}"})
    drafter = convert(shared / "drafters" / "smollm2-eagle3-specforge")
    fixed = ("--license", "apache-2.0", "--base-model", TARGET, "--allow-unverified", "--yes")
    published = run("publish", drafter, REPO, *fixed)
    assert published.exit_code == 0, published.stdout + published.stderr
    hub.clear_log()

    judged = run("validate", REPO)
    fetched = hub.sent
    copy = Path(snapshot_download(REPO))

    assert judged.exit_code == 0, judged.stdout + judged.stderr
    assert fetched < 512 << 10
    assert hub.sent > 4 << 20
    assert serve(copy) == serve(drafter)
