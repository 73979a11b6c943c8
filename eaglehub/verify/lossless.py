"""Checks that speculative decoding changes nothing but the speed: the target's own tokens come out, drafter or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eaglehub.report.verdict import Verdict
from eaglehub.verify.checks import CATALOGUE, CheckResult
from eaglehub.verify.sampling import chi_square_p

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eaglehub.verify.checks import Check
    from eaglehub.verify.process import EngineRun

# Nats between the target's two best tokens that another order of summation can bridge: a few units in the last place of
# logits between 16 and 32, or what hundreds of roundings add up to in float32.
NOISE = {"float32": 1e-3, "float16": 0.0625, "bfloat16": 0.5}
MIN_P = 0.001
_SHOWN = 8


@dataclass(slots=True)
class Comparison:
    """Outputs of two runs, prompt by prompt: the same, tied, or different."""

    sequences: int = 0
    tokens: int = 0
    ties: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As evidence; places are counted from 0, and only the first few are listed."""
        return {
            "sequences": self.sequences,
            "tokens": self.tokens,
            "same": self.sequences - len(self.ties) - len(self.differences),
            "num_ties": len(self.ties),
            "num_differences": len(self.differences),
            "ties": self.ties[:_SHOWN],
            "differences": self.differences[:_SHOWN],
        }


def run_lossless(check: Check, target: EngineRun, drafter: EngineRun) -> CheckResult:
    """Judge one check of the family from a run of the target alone and one with the drafter."""
    return _JUDGES[check.id](check, target, drafter)


def _judge_greedy(job: str) -> Callable[[Check, EngineRun, EngineRun], CheckResult]:
    def judge(check: Check, target: EngineRun, drafter: EngineRun) -> CheckResult:
        alone, drafted = target.jobs[job], drafter.jobs[job]
        if refusal := _refusal(check, alone, drafted):
            return refusal
        noise = NOISE.get(target.facts["dtype"], NOISE["bfloat16"])
        comparison = compare(alone["outputs"], drafted["outputs"], noise)
        threshold = f"the same tokens, or a tie: two tokens less than {noise:g} nats apart ({target.facts['dtype']})"
        return CheckResult(check, _verdict(comparison), _summary(comparison), threshold, comparison.to_json())

    return judge


def _judge_chunked(check: Check, target: EngineRun, drafter: EngineRun) -> CheckResult:
    facts = drafter.facts
    if not facts["chunked_prefill"]:
        return CheckResult(check, Verdict.SKIPPED, "vLLM does not prefill in chunks with this configuration")
    lengths = [output["prompt_tokens"] for output in drafter.jobs["long"].get("outputs", ()) if output]
    if sum(lengths) <= facts["max_num_batched_tokens"]:
        return CheckResult(check, Verdict.SKIPPED, "the long prompts fit into one step of the engine")
    return _judge_greedy("long")(check, target, drafter)


def _judge_cached(check: Check, target: EngineRun, drafter: EngineRun) -> CheckResult:
    if not drafter.facts["prefix_caching"]:
        return CheckResult(check, Verdict.SKIPPED, "vLLM caches no prefixes with this configuration")
    if not any(output and output["cached_tokens"] for output in drafter.jobs["repeat"].get("outputs", ())):
        return CheckResult(check, Verdict.SKIPPED, "vLLM found nothing in its prefix cache")
    return _judge_greedy("repeat")(check, target, drafter)


def _judge_sampling(check: Check, target: EngineRun, drafter: EngineRun) -> CheckResult:
    alone, drafted = target.jobs["sampling"], drafter.jobs["sampling"]
    if refusal := _refusal(check, alone, drafted):
        return refusal
    samples = [(_token_lists(one), _token_lists(other)) for one, other in _pairs(alone["outputs"], drafted["outputs"])]
    positions = max(len(tokens) for one, other in samples for tokens in (*one, *other))
    by_position = [
        chi_square_p([(_at(one, position), _at(other, position)) for one, other in samples])
        for position in range(positions)
    ]
    p = min(1.0, positions * min(by_position))
    count = sum(len(one) for one, _ in samples)
    return CheckResult(
        check,
        Verdict.PASS if p > MIN_P else Verdict.FAIL,
        f"{count} samples of the first {positions} tokens: p = {p:.3g}",
        f"chi-square p > {MIN_P:g}, corrected for {positions} positions",
        {"samples": count, "prompts": len(samples), "p": p, "p_by_position": by_position},
    )


_JUDGES: dict[str, Callable[[Check, EngineRun, EngineRun], CheckResult]] = {
    "lossless.batch": _judge_greedy("batch"),
    "lossless.single": _judge_greedy("single"),
    "lossless.chunked-prefill": _judge_chunked,
    "lossless.prefix-caching": _judge_cached,
    "lossless.stop-string": _judge_greedy("stop"),
    "lossless.json-schema": _judge_greedy("json"),
    "lossless.sampling": _judge_sampling,
}
LOSSLESS = frozenset(check for check in CATALOGUE if check in _JUDGES)


def compare(alone: Sequence[Any], drafted: Sequence[Any], noise: float) -> Comparison:
    """Compare outputs token by token up to the first difference in each.

    Args:
        alone: the worker's outputs of the target alone, with alternatives.
        drafted: those with the drafter, for the same prompts.
        noise: nats between two tokens that count as a tie.
    """
    comparison = Comparison()
    for prompt, (one, other) in enumerate(zip(alone, drafted, strict=True)):
        if one is None or other is None:
            continue
        comparison.sequences += 1
        expected, got = one["samples"][0], other["samples"][0]
        place = _first_difference(expected, got)
        comparison.tokens += len(expected["tokens"]) if place is None else place
        if place is not None:
            found = _describe(prompt, place, expected, got)
            tied = found["margin"] is not None and abs(found["margin"]) <= noise
            (comparison.ties if tied else comparison.differences).append(found)
    return comparison


def _first_difference(expected: Mapping[str, Any], got: Mapping[str, Any]) -> int | None:
    """Where the tokens part.

    After a stop string vLLM may leave the rest of the accepted tokens in the list, but not in the text: then the texts
    must be equal, and the tokens as far as both go.
    """
    both = list(zip(expected["tokens"], got["tokens"], strict=False))
    place = next((place for place, (one, other) in enumerate(both) if one != other), None)
    if expected["stop"] and expected["text"] == got["text"]:
        return None
    if place is None and (len(expected["tokens"]) != len(got["tokens"]) or expected["text"] != got["text"]):
        return len(both)
    return place


def _describe(prompt: int, place: int, expected: Mapping[str, Any], got: Mapping[str, Any]) -> dict[str, Any]:
    token = _token_at(got, place)
    nearby = dict(expected["alternatives"][place]) if place < len(expected["alternatives"]) else {}
    return {
        "prompt": prompt,
        "position": place,
        "target_token": _token_at(expected, place),
        "token": token,
        "margin": nearby.get(token),
    }


def _token_at(sample: Mapping[str, Any], place: int) -> int | None:
    return sample["tokens"][place] if place < len(sample["tokens"]) else None


def _verdict(comparison: Comparison) -> Verdict:
    if comparison.differences or not comparison.sequences:
        return Verdict.FAIL if comparison.sequences else Verdict.SKIPPED
    return Verdict.WARN if 2 * len(comparison.ties) > comparison.sequences else Verdict.PASS


def _summary(comparison: Comparison) -> str:
    if not comparison.sequences:
        return "no prompt is short enough for the engine"
    if comparison.differences:
        first = comparison.differences[0]
        margin = "more than 1" if first["margin"] is None else f"{first['margin']:.3g}"
        what = f"{len(comparison.differences)} of {comparison.sequences} sequences differ"
        where = f"prompt {first['prompt']}, token {first['position']}: {first['token']}, not {first['target_token']}"
        return f"{what}; first {where}, {margin} nats apart"
    tied = f", {len(comparison.ties)} of them up to a tie" if comparison.ties else ""
    return f"{comparison.sequences} sequences, {comparison.tokens} tokens, all the same{tied}"


def _refusal(check: Check, alone: Mapping[str, Any], drafted: Mapping[str, Any]) -> CheckResult | None:
    """The result where vLLM refused the job."""
    if "error" in alone:
        return CheckResult(check, Verdict.SKIPPED, f"the target alone cannot: {alone['error']}")
    if "defect" in drafted:
        return CheckResult(check, Verdict.WARN, f"not run: {drafted['defect']}")
    if "error" in drafted:
        return CheckResult(check, Verdict.FAIL, f"vLLM refuses with the drafter: {drafted['error']}")
    if not any(drafted["outputs"]):
        return CheckResult(check, Verdict.SKIPPED, "no prompt is short enough for the engine")
    return None


def _pairs(alone: Sequence[Any], drafted: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(one, other) for one, other in zip(alone, drafted, strict=True) if one and other]


def _token_lists(output: Mapping[str, Any]) -> list[list[int]]:
    return [sample["tokens"] for sample in output["samples"]]


def _at(samples: Sequence[Sequence[int]], position: int) -> list[int | None]:
    return [tokens[position] if position < len(tokens) else None for tokens in samples]
