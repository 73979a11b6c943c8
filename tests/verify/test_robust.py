"""Suites that throw drafters off: their prompts, and what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from eaglehub.errors import UsageProblem
from eaglehub.prompts import load_suite
from eaglehub.verify.checks import CATALOGUE, choose_checks
from eaglehub.verify.process import EngineRun
from eaglehub.verify.robust import Gates, Robustness, judge_robustness, measure_robustness, robust_jobs
from tests.reports import validate

if TYPE_CHECKING:
    from tests.verify.conftest import Bench

K = 2
PROMPTS = load_suite("chat")
ROOM = 5000


class Tokenizer:
    """Words are tokens, and roles stand before them."""

    bos_token_id, chat_template = 1, "yes"

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        return "<s> " + " ".join(f"<{message['role']}> {message['content']}" for message in messages)

    def encode(self, text: str, **_: Any) -> list[int]:
        return [{"<s>": 1, "<user>": 2, "<system>": 3, "Instruction:": 4}.get(word, 9) for word in text.split()]


def jobs(*checks: str, room: int = ROOM) -> dict[str, list[list[int]]]:
    chosen = [CATALOGUE[check] for check in checks]
    return {job["name"]: job["prompts"] for job in robust_jobs(chosen, PROMPTS, Tokenizer(), room, 8)}


def test_templates() -> None:
    prompts = jobs("robust.templates")
    assert list(prompts) == ["plain", "no_bos", "no_template", "neither", "other_template"]
    starts = {name: suite[0][:2] for name, suite in prompts.items()}
    assert starts == {
        "plain": [1, 2],
        "no_bos": [2, 9],
        "no_template": [1, 9],
        "neither": [9, 9],
        "other_template": [1, 9],
    }
    assert all(4 in prompt for prompt in prompts["other_template"])


def test_system_prompts_and_nothing_else() -> None:
    prompts = jobs("robust.system-prompts")
    assert list(prompts) == ["plain", "odd_system"]
    assert all(prompt[1] == 3 for prompt in prompts["odd_system"])


def test_long_contexts_of_several_lengths_up_to_what_fits() -> None:
    prompts = jobs("robust.long-context", room=3000)
    assert list(prompts) == ["plain", "long-1024", "long-2048", "long-3000"]
    for name, suite in prompts.items():
        if name != "plain":
            limit = int(name.partition("-")[2])
            assert all(0.5 * limit < len(prompt) <= limit for prompt in suite), (name, [*map(len, suite)])


def test_no_room_for_any() -> None:
    assert list(jobs("robust.long-context", room=100)) == ["plain"]


def test_checks_without_suites_need_no_tokenizer() -> None:
    assert robust_jobs(choose_checks((), ()), PROMPTS, None, ROOM, 8) == []


def output(accepted: int) -> dict[str, Any]:
    walk = {"accepted": [10 - accepted, accepted, 0], "drafted": 20}
    return {"samples": [{"walk": walk}]}


def run(**accepted: list[int]) -> tuple[EngineRun, list[dict[str, Any]]]:
    """An engine that accepted so many of ten drafts of each prompt, and what it was asked."""
    done = {
        name: {
            "counters": {
                "drafts": 10 * len(each),
                "draft_tokens": 20 * len(each),
                "accepted_tokens_per_pos": [sum(each), 0],
            },
            "outputs": [output(count) for count in each],
        }
        for name, each in accepted.items()
    }
    asked = [{"name": name, "prompts": [[1] * 30] * len(each)} for name, each in accepted.items()]
    return EngineRun({}, {}, None, done, 1.0), asked


def measured(others: dict[str, list[int]] | None = None, **accepted: list[int]) -> tuple[Robustness, ...]:
    engine, asked = run(**accepted)
    return measure_robustness(engine, run(**others)[0] if others else None, asked, K)


MEASURED = measured(plain=[5, 5, 5, 5], no_bos=[4, 4, 4, 5], odd_system=[5, 5, 5, 6])
TEMPLATES = CATALOGUE["robust.templates"]


def test_ratios_to_plain_chat() -> None:
    plain, no_bos, odd = MEASURED
    assert (plain.ratio, plain.prompt_tokens) == (None, 30)
    assert no_bos.ratio == pytest.approx((1 + 17 / 40) / 1.5)
    assert odd.ratio == pytest.approx((1 + 21 / 40) / 1.5)
    assert odd.half_width is not None
    assert odd.half_width > 0
    assert no_bos.line().startswith("no_bos: length 1.425 (")


def test_without_a_gate_it_only_reports() -> None:
    result = judge_robustness(TEMPLATES, MEASURED, Gates())
    assert (result.verdict, result.summary) == ("pass", "no_bos 1.425 (x 0.95)")
    assert [each["suite"] for each in result.evidence["suites"]] == ["no_bos"]


def test_gates() -> None:
    assert judge_robustness(TEMPLATES, MEASURED, Gates({"no_bos": 0.9})).verdict == "pass"
    missed = judge_robustness(TEMPLATES, MEASURED, Gates({"no_bos": 0.96}))
    assert (missed.verdict, missed.summary) == ("fail", "no_bos: 0.950 of plain chat, not 0.96")
    other = judge_robustness(CATALOGUE["robust.system-prompts"], MEASURED, Gates({"no_bos": 0.96}))
    assert other.verdict == "pass"


def test_a_family_of_suites() -> None:
    robust = measured(**{"plain": [5, 5], "long-512": [5, 5], "long-1024": [1, 1]})
    result = judge_robustness(CATALOGUE["robust.long-context"], robust, Gates({"long": 0.8}))
    assert result.summary == "long-1024: 0.733 of plain chat, not 0.8"


def test_an_earlier_report_is_a_gate() -> None:
    better = {each.suite: each.acceptance for each in measured(plain=[9], no_bos=[9, 9, 9, 9])}
    result = judge_robustness(TEMPLATES, MEASURED, Gates(baseline=better))
    assert (result.verdict, result.summary) == ("fail", "no_bos: acceptance length 1.425, the baseline 1.900")


def test_another_drafter_beside_it_is_paired_by_prompt_and_a_gate() -> None:
    # Prompts differ more from each other than the drafters do on any of them.
    robust = measured({"plain": [1, 5, 9], "no_bos": [2, 6, 8]}, plain=[1, 5, 9], no_bos=[1, 5, 7])
    plain, no_bos = (each.to_json()["compared"] for each in robust)
    assert (plain["difference"], plain["half_width"]) == (0, 0)
    assert no_bos["difference"] == pytest.approx(-0.1)
    assert no_bos["half_width"] == pytest.approx(0, abs=1e-9)
    assert ", -0.100 +-0.000 against the other drafter" in robust[1].line()
    result = judge_robustness(TEMPLATES, robust, Gates())
    assert (result.verdict, result.summary) == ("fail", "no_bos: acceptance length 1.433, the other drafter 1.533")
    assert MEASURED[0].to_json()["compared"] is None


def test_suites_that_this_target_does_not_have() -> None:
    assert judge_robustness(CATALOGUE["robust.long-context"], MEASURED, Gates()).verdict == "skipped"


def test_an_unknown_suite() -> None:
    with pytest.raises(UsageProblem, match="there is no suite 'short'"):
        Gates({"short": 0.9})


def test_the_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eaglehub.verify.engines.load_tokenizer", lambda *_, **__: Tokenizer())
    report = validate(bench.verify("good", "--json", "--min-ratio", "long=0.9", "--min-ratio", "odd_system=1.5"))
    verdicts = {check["id"]: check["verdict"] for check in report["checks"] if check["id"].startswith("robust.")}
    assert verdicts == {"robust.long-context": "pass", "robust.templates": "pass", "robust.system-prompts": "fail"}
    assert [suite["suite"] for suite in report["robust"]][:2] == ["plain", "no_bos"]
    assert validate(bench.verify("good", "--json"))["robust"] == []


def test_a_report_of_nothing_but_suites_is_a_baseline(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eaglehub.verify.engines.load_tokenizer", lambda *_, **__: Tokenizer())
    earlier = bench.folder / "earlier.json"
    assert bench.verify("good", "--select", "robust", "--output", f"json={earlier}").exit_code == 0
    again = bench.verify("good", "--select", "robust", "--baseline", earlier)
    assert again.exit_code == 0, again.stderr


def test_the_command_with_another_drafter(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eaglehub.verify.engines.load_tokenizer", lambda *_, **__: Tokenizer())
    report = validate(bench.verify("good", "--json", "--robust", "--compare", str(bench.drafter)))
    assert {suite["compared"]["difference"] for suite in report["robust"]} == {0}
    only = bench.verify("good", "--json", "--select", "robust", "--compare", str(bench.drafter))
    checks = {check["id"]: check["verdict"] for check in only.json()["checks"]}
    assert checks["speculating.compare"] == "pass", "one that vLLM does not serve would not be noticed without it"
