"""Two verifications side by side: what is better, what is worse, and whether they compare at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.diff import diff_configs
from eaglehub.errors import UsageProblem
from eaglehub.pages.page import CAUTION, Bar, Bars, Cell, Figure, Page, Section, Table
from eaglehub.pages.verify import CHECKED
from eaglehub.pages.words import acceptance_sections, count, short
from eaglehub.verify.baseline import read_acceptance
from eaglehub.verify.metrics import paired_half_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_ABSENT = Cell("\u2013 not run", "muted")


def compare_page(names: Sequence[str], reports: Sequence[Mapping[str, Any]]) -> Page:
    """From two verification reports, the earlier one first.

    Raises:
        UsageProblem: one of them is another kind of report.
    """
    for name, report in zip(names, reports, strict=True):
        if report["kind"] != "verify":
            raise UsageProblem("only reports of eaglehub verify are compared", where=name)
    before, after = reports
    labels = _labels(names, reports)
    unlike = _unlike(before, after)
    measured = [report for report in reports if report["acceptance"]]
    sides = list(zip(labels, (report["acceptance"] for report in measured), strict=False))
    return Page(
        title=f"{labels[1]} against {labels[0]}",
        verdict="! Not measured alike" if unlike else "",
        tone=CAUTION if unlike else "",
        summary=f"Different: {', '.join(unlike)}." if unlike else f"On {after['target']['name']}, the same prompts.",
        figures=list(_figures(before, after, unlike)) if len(measured) == 2 else [],
        sections=[
            *(acceptance_sections(sides) if len(measured) == 2 else ()),
            *_speed(labels, before, after),
            _checks(labels, before, after),
            *_changes(labels, before["drafter"], after["drafter"]),
            _runs(labels, reports),
        ],
        footer=f"eaglehub {after['eaglehub']}",
    )


def _labels(names: Sequence[str], reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """The drafters' names where they differ, else the files'."""
    drafters = [str(report["drafter"]["name"]) for report in reports]
    return (
        drafters
        if drafters[0] != drafters[1]
        else [f"{each} ({name})" for each, name in zip(drafters, names, strict=True)]
    )


def _unlike(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What keeps their numbers from being compared."""
    conditions: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "the target": lambda report: report["target"]["files"],
        "the prompts": lambda report: report["prompts"]["digest"],
        "tokens for each prompt": lambda report: report["prompts"]["max_tokens"],
        "drafted tokens a step": lambda report: report["config"]["num_speculative_tokens"],
        "the dtype": lambda report: report["engine"]["dtype"],
    }
    return [name for name, read in conditions.items() if read(before) != read(after)]


def _figures(before: Mapping[str, Any], after: Mapping[str, Any], unlike: Sequence[str]) -> Iterator[Figure]:
    one, other = (read_acceptance(report["acceptance"]) for report in (before, after))
    change = other.acceptance_length - one.acceptance_length
    yield Figure("acceptance length", f"{one.acceptance_length:.3f} \u2192 {other.acceptance_length:.3f}")
    share = other.acceptance_length / one.acceptance_length - 1
    note = "not measured alike" if unlike else f"95 % \u00b1 {paired_half_width(other, one):.3f}, paired by prompt"
    yield Figure("difference", f"{change:+.3f} ({share:+.1%})", note)
    if before.get("fast") and after.get("fast"):
        rates = [report["fast"][0]["drafter"]["tokens_per_second_per_user"] for report in (before, after)]
        yield Figure("tokens/s for one user", f"{rates[0]:.1f} \u2192 {rates[1]:.1f}")


def _speed(labels: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Section]:
    rates = [
        {level["concurrency"]: level["drafter"]["tokens_per_second_per_user"] for level in report.get("fast", ())}
        for report in (before, after)
    ]
    if shared := [concurrency for concurrency in rates[0] if concurrency in rates[1]]:
        groups = [(count(each, "user"), [Bar(rate[each], f"{rate[each]:.1f}") for rate in rates]) for each in shared]
        yield Section("Speed by number of users", [Bars("output tokens per second per user", labels, groups)])


def _checks(labels: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Section:
    sides = [{check["id"]: check["verdict"] for check in report["checks"]} for report in (before, after)]
    rows = [
        [check, *(CHECKED[side[check]] if check in side else _ABSENT for side in sides)]
        for check in dict.fromkeys([*sides[0], *sides[1]])
    ]
    return Section("Checks", [Table(["check", *labels], rows)])


def _changes(labels: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Section]:
    """What differs between the drafters themselves."""
    found = diff_configs(before["config"], after["config"])
    rows = [
        *([key, str(old), str(new)] for key, (old, new) in found.changed.items()),
        *([key, str(old), "\u2013"] for key, old in found.removed.items()),
        *([key, "\u2013", str(new)] for key, new in found.added.items()),
    ]
    if rows:
        yield Section("Config keys that differ", [Table(["key", *labels], rows)])
    tensors = [{tensor["name"]: tensor["sha256"] for tensor in side["tensors"]} for side in (before, after)]
    changed = [name for name in {**tensors[0], **tensors[1]} if tensors[0].get(name) != tensors[1].get(name)]
    digests = [[name, *(short(side[name]) if name in side else "\u2013" for side in tensors)] for name in changed]
    if digests:
        yield Section("Tensors that differ", [Table(["tensor", *labels], digests)], "By SHA-256.")


def _runs(labels: Sequence[str], reports: Sequence[Mapping[str, Any]]) -> Section:
    facts: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "verdict": lambda report: report["verdict"],
        "drafter's digest": lambda report: short(report["drafter"]["digest"]),
        "prompts": lambda report: f"{report['prompts']['count']}, digest {short(report['prompts']['digest'])}",
        "vLLM": lambda report: report["engine"]["vllm"],
        "model runner": lambda report: report["engine"]["runner"].upper(),
        "dtype": lambda report: report["engine"]["dtype"],
        "GPUs": lambda report: ", ".join(gpu["name"] for gpu in report["hardware"]["gpus"]) or "none",
        "CPU": lambda report: report["hardware"]["cpu"],
    }
    rows = [[name, *(read(report) for report in reports)] for name, read in facts.items()]
    return Section("What was run", [Table(["", *labels], rows)])
