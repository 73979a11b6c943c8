"""The speed of an engine with and without a drafter: the measuring loop, the numbers and the gate."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eaglehub.verify import pacing
from eaglehub.verify.fast import Level, Pace, Timed
from tests.reports import validate

if TYPE_CHECKING:
    from tests.cli_runner import Result
    from tests.verify.conftest import Bench


@dataclass
class Engine:
    """Gives each of its requests two tokens a step, after a step without any, and takes 1 s a step."""

    clock: list[float]
    running: dict[str, list[int]] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    most: int = 0

    def add_request(self, key: str, prompt: Any, sampling: int) -> None:
        self.running[key] = []
        self.wanted[key] = sampling
        self.most = max(self.most, len(self.running))

    def step(self) -> list[Any]:
        self.clock[0] += 1
        outputs = []
        for key, tokens in list(self.running.items()):
            finished = len(tokens) >= self.wanted[key] > 0
            outputs.append(
                SimpleNamespace(request_id=key, outputs=[SimpleNamespace(token_ids=list(tokens))], finished=finished)
            )
            tokens += [0, 0]
            if finished:
                del self.running[key]
        return outputs


def test_requests_are_kept_at_the_concurrency_and_timed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(pacing, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    engine = Engine(clock)

    timed = pacing.run_at(engine, "fast-2", [(None, 4), (None, 8), (None, 4)], 2)

    assert engine.most == 2
    # In the order of the requests, not of their ends: the third starts when the first is done.
    assert [request["tokens"] for request in timed["requests"]] == [4, 8, 4]
    assert [request["seconds"] for request in timed["requests"]] == [3, 5, 3]
    assert [request["first_token_s"] for request in timed["requests"]] == [2, 2, 2]
    assert timed["seconds"] == 6


def test_the_numbers() -> None:
    alone = Pace((Timed(101, 1.0, 3.0), Timed(101, 2.0, 7.0)), 8.0)
    drafted = Pace((Timed(101, 1.0, 2.0), Timed(101, 2.0, 3.0)), 4.0)
    assert alone.to_json() == {
        "tokens_per_second_per_user": pytest.approx(20.2),
        "tokens_per_second": pytest.approx(25.25),
        "first_token_s": {"median": 1.5, "p90": pytest.approx(1.9)},
        "inter_token_s": {"median": pytest.approx(0.035), "p90": pytest.approx(0.047)},
    }
    speedup = Level(4, alone, drafted).to_json()["speedup"]
    assert speedup["value"] == pytest.approx(2)
    assert speedup["low"] < 2 < speedup["high"]
    assert Level(4, None, drafted).to_json()["speedup"] is None


def speedups(result: Result) -> list[float]:
    return [level["speedup"]["value"] for level in validate(result)["fast"]]


def test_it_is_measured_when_asked_for_and_reported_only(bench: Bench) -> None:
    assert bench.verify("good", "--json").json()["fast"] == []
    result = bench.verify("good", "--json", "--fast", "--select", "speculating.drafts")
    assert result.exit_code == 0
    assert speedups(result) == pytest.approx([2, 2, 2])
    assert [level["concurrency"] for level in result.json()["fast"]] == [1, 4, 16]
    assert [level["requests"] for level in result.json()["fast"]] == [8, 8, 32]
    text = bench.verify("good", "--fast", "--select", "speculating.drafts").stdout
    assert "concurrency 4: 50.0 tokens/s a user, 25.0 without the drafter: 2.00 times (2.00 to 2.00)" in text
    selected = bench.verify("good", "--json", "--select", "fast").json()
    assert [check["id"] for check in selected["checks"]] == ["engine.drafter", "fast.speedup"]


@pytest.mark.parametrize(
    ("wanted", "verdict"), [(["1.9"], "pass"), (["2.1"], "fail"), (["16=2.1"], "fail"), (["2.1", "1=2", "4=2"], "fail")]
)
def test_the_gate(bench: Bench, wanted: list[str], verdict: str) -> None:
    options = [f"--min-speedup={each}" for each in wanted]
    result = bench.verify("good", "--json", "--select", "speculating.drafts", *options)
    (check,) = (check for check in validate(result)["checks"] if check["id"] == "fast.speedup")
    assert (check["verdict"], result.exit_code) == (verdict, int(verdict == "fail"))


@pytest.mark.parametrize("text", ["x", "a=1", "2=1.5", "1=", "nan"])
def test_wrong_usage(bench: Bench, text: str) -> None:
    assert bench.verify("good", f"--min-speedup={text}").exit_code == 2
