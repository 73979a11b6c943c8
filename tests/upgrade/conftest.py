"""A random target with drafters that fit it, for mechanics; and the real ones, for what an upgrade costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.models.tiny_target import write_prompts, write_target

if TYPE_CHECKING:
    from eaglehub.features import Store

PROMPTS, MAX_TOKENS = 24, 96


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random target's folder."""
    return write_target(tmp_path_factory.mktemp("upgrade") / "target")


@pytest.fixture(scope="session")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of six questions."""
    return write_prompts(tmp_path_factory.mktemp("upgrade") / "prompts.jsonl")


@pytest.fixture(scope="session")
def real_drafter(shared: Path) -> Path:
    """The real EAGLE-3 drafter for the real target."""
    return shared / "drafters" / "smollm2-eagle3-specforge"


@pytest.fixture(scope="session")
def fresh_prompts(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions that the real drafter has never seen."""
    file = tmp_path_factory.mktemp("fresh") / "prompts.jsonl"
    with (shared / "data" / "smollm2-fresh.jsonl").open(encoding="utf-8") as lines:
        questions = [json.loads(next(lines))["messages"][:1] for _ in range(PROMPTS)]
    file.write_text("\n".join(json.dumps({"messages": messages}) for messages in questions), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def store_root(real_target: Path, request: pytest.FixtureRequest) -> Path:
    """Where the real target's states are kept: they are found again by every test, and by the next run."""
    return Path(request.config.cache.mkdir("eaglehub-features"))


@pytest.fixture(scope="session")
def fresh_store(real_target: Path, fresh_prompts: Path, store_root: Path) -> Store:
    """The real target's states and greedy answers on the fresh prompts."""
    from eaglehub.drafter.target import read_target
    from eaglehub.features import Source, encode, extract
    from eaglehub.prompts import load_prompts

    source = Source(target=read_target(real_target))
    samples = encode(load_prompts(str(fresh_prompts)), source.tokenizer())
    extraction = source.extraction(samples, (2, 15, 27), max_tokens=MAX_TOKENS, ignore_eos=True)
    (store,) = extract(source, [extraction], store_root)
    return store
