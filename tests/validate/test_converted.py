"""What convert writes has nothing wrong with it, and what a producer wrote is judged as the engine would take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run
from tests.drafters import BUILDERS, NEEDS_TORCH, build

if TYPE_CHECKING:
    from pathlib import Path

SOUND = [name for name in BUILDERS if name not in ("modelopt-no-aux", "torchspec-pruned")]
# One of each kind; the rest takes long.
FEW = ("vllm-3.1", "vllm-mla", "automodel-sliding", "specforge-full-vocab", "legacy-aux-norm", "speculators-peagle")


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in SOUND]
)
def test_a_converted_drafter_is_clean(name: str, tmp_path: Path) -> None:
    if name in NEEDS_TORCH:
        pytest.importorskip("torch")
    source = build(name, tmp_path / "source")
    assert source.expected is not None
    converted = run("convert", source.path, tmp_path / "out", *source.expected.options)
    assert converted.exit_code == 0, converted.stdout

    result = run("validate", tmp_path / "out", "--strict", "--ignore", "EH703")

    assert result.exit_code == 0, result.stdout


@pytest.mark.parametrize("name", ["specforge", "modelopt", "torchspec-vllm", "specforge-hf-export"])
def test_raw_nested_ids_are_an_error_that_convert_mends(name: str, tmp_path: Path) -> None:
    [drafter] = run("validate", build(name, tmp_path).path, "--json").json()["drafters"]
    [finding] = [finding for finding in drafter["findings"] if finding["code"] == "EH711"]
    assert (finding["severity"], finding["fix"]) == ("error", "eaglehub convert")
    assert drafter["exit_code"] == 1
