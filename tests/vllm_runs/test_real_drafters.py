"""A real drafter, as two producers wrote it, served by a real vLLM before and after conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vllm_runs.conftest import Convert, Serve

pytestmark = pytest.mark.vllm

# Layers whose input the drafter was trained on.
TRAINED_ON = [2, 15, 27]
PRODUCERS = ["safeailab", "specforge"]


def _source(shared: Path, producer: str) -> Path:
    return shared / "drafters" / f"smollm2-eagle3-{producer}"


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_converted_drafter_has_its_tokens_accepted(
    shared: Path, convert: Convert, serve: Serve, producer: str
) -> None:
    served = serve(convert(_source(shared, producer)))
    assert served.drafts > 0
    assert all(count > 0 for count in served.accepted[:3]), served


@pytest.mark.parametrize("producer", PRODUCERS)
def test_both_runners_read_the_layers_a_converted_drafter_was_trained_on(
    shared: Path, convert: Convert, serve: Serve, producer: str
) -> None:
    served = serve(convert(_source(shared, producer)))
    assert served.runner == "V1"
    assert served.aux_layers == TRAINED_ON
    assert served.v2_reads == TRAINED_ON


def test_conversion_changes_nothing_where_vllm_already_read_the_source_rightly(
    shared: Path, convert: Convert, serve: Serve
) -> None:
    source = _source(shared, "safeailab")
    before, after = serve(source), serve(convert(source))
    assert before.aux_layers == TRAINED_ON
    assert after.tokens == before.tokens
    assert (after.drafts, after.accepted) == (before.drafts, before.accepted)


def test_conversion_moves_the_layers_where_vllm_read_the_source_wrongly(
    shared: Path, convert: Convert, serve: Serve
) -> None:
    source = _source(shared, "specforge")
    before, after = serve(source), serve(convert(source))
    assert before.aux_layers == [1, 14, 26]
    assert before.v2_reads is None
    assert after.aux_layers == TRAINED_ON
    assert after.tokens == before.tokens
