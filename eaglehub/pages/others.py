"""The pages of evaluations, upgrades, fine-tunings, conversions and validations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.pages.page import BAD, CAUTION, GOOD, MUTED, Bar, Bars, Cell, Figure, Page, Section, Table
from eaglehub.pages.words import acceptance_sections, count, length_bar, percent, position_bars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SEVERITIES = {
    "error": Cell("\u2717 error", BAD),
    "warning": Cell("! warning", CAUTION),
    "note": Cell("note", MUTED),
}
_FOOTER = "eaglehub"


def evaluate_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-evaluate.schema.json`."""
    sides = [report["drafter"], *([report["compare"]] if report["compare"] else [])]
    names = [side["name"] for side in sides]
    suites = list(report["drafter"]["suites"])
    lengths = [(suite, [length_bar(side["suites"][suite]) for side in sides]) for suite in suites]
    first = [(side["name"], side["suites"][suites[0]]) for side in sides]
    return Page(
        title=f"{' and '.join(names)} on {report['target']}, without a server",
        verdict="",
        tone="",
        summary=f"Judged by the target's greedy answers; draft tokens a step: {report['num_speculative_tokens']}.",
        figures=list(_ratios(report, suites)) or [Figure(f"acceptance length, {suites[0]}", lengths[0][1][0].text)],
        sections=[
            Section("Acceptance length by condition", [Bars("acceptance length (95 % interval)", names, lengths)]),
            Section(f"Acceptance by draft position, {suites[0]}", [position_bars(first)]),
            Section(f"Drift, {suites[0]}", [_drift(first), _measures(first)], "By draft step; flat is healthy."),
        ],
        footer=_FOOTER,
    )


def _ratios(report: Mapping[str, Any], suites: Sequence[str]) -> Iterator[Figure]:
    for suite in suites if report["ratio"] else ():
        ratio = report["ratio"][suite]
        note = f"{percent(ratio['low'])} to {percent(ratio['high'])}"
        yield Figure(f"ratio of lengths, {suite}", percent(ratio["value"]), note)


def _drift(sides: Sequence[tuple[str, Mapping[str, Any]]]) -> Bars:
    values = [score["drift"]["state_rms"] for _, score in sides]
    groups = [
        (f"step {step + 1}", [Bar(each[step], f"{each[step]:.2f}") if step < len(each) else None for each in values])
        for step in range(max(map(len, values)))
    ]
    return Bars("state RMS", [name for name, _ in sides], groups)


def _measures(sides: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """All measures of drift, of which the bars show the one that is fed back."""
    steps = max(len(values) for _, score in sides for values in score["drift"].values())
    rows = [
        [f"{name}: {measure.replace('_', ' ')}", *(f"{value:.3f}" for value in values)]
        for name, score in sides
        for measure, values in score["drift"].items()
    ]
    return Table(["draft step", *(str(step + 1) for step in range(steps))], rows, numbers=True)


def upgrade_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-upgrade.schema.json`."""
    upgrade = report["upgrade"]
    measured = [(name, score) for name, score in (upgrade["measured"] or {}).items() if score]
    statements = [["exact" if each["exact"] else "approximate", each["what"]] for each in upgrade["statements"]]
    sections = [*findings_sections(report["findings"])]
    if measured:
        sections += acceptance_sections(measured)
    if statements:
        sections.append(Section("What is kept", [Table(["", "statement"], statements)]))
    sections += changes_sections(report["config_edits"], report["tensors"])
    return Page(
        title=f"{report['source']['name']} upgraded to EAGLE 3.1",
        verdict="needs training" if upgrade["needs_training"] else report["status"],
        tone=CAUTION if upgrade["needs_training"] else GOOD,
        summary=f"fc_norm {_switched(upgrade['fc_norm'])}, norm_output {_switched(upgrade['norm_output'])}.",
        figures=[_ratio_figure("acceptance length kept", upgrade["ratio"])] if upgrade["ratio"] else [],
        sections=sections,
        footer=_FOOTER,
    )


def _ratio_figure(label: str, ratio: Mapping[str, float]) -> Figure:
    note = f"95 % interval {percent(ratio['low'])} to {percent(ratio['high'])}"
    return Figure(label, percent(ratio["value"]), note)


def _switched(on: bool) -> str:
    return "switched on" if on else "left as it was"


def finetune_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-finetune.schema.json`."""
    tuned = report["finetune"]
    curve = [
        (f"step {point['step']}", [Bar(point["acceptance_length"], f"{point['acceptance_length']:.3f}")])
        for point in tuned["curve"]
    ]
    return Page(
        title=f"{report['source']['name']} fine-tuned",
        verdict="\u2713 Kept" if tuned["kept"] else "! Not kept",
        tone=GOOD if tuned["kept"] else CAUTION,
        summary=f"{count(len(tuned['tensors']), 'tensor')} trained for {count(tuned['steps'], 'step')}; "
        f"the best was step {tuned['best_step']}.",
        figures=[_ratio_figure("acceptance length, after / before", tuned["ratio"])],
        sections=[
            *acceptance_sections([("before", tuned["before"]), ("after", tuned["after"])]),
            Section("While training", [Bars("acceptance length at every position", [""], curve)]),
            Section("Tensors", [Table(["trained"], [[name] for name in tuned["tensors"]])]),
        ],
        footer=_FOOTER,
    )


def convert_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-convert.schema.json`."""
    plan = report["plan"] or {"config_edits": [], "tensors": [], "dropped": []}
    refused = report["status"] == "refused"
    dropped = [[item["name"], item["reason"]] for item in plan["dropped"]]
    sections = [*findings_sections(report["findings"]), *changes_sections(plan["config_edits"], plan["tensors"])]
    if dropped:
        sections.append(Section("Dropped tensors", [Table(["tensor", "why"], dropped)]))
    return Page(
        title=f"{report['source']['name']}: {report['source']['format']} to {report['layout']}",
        verdict=report["status"],
        tone=BAD if refused else GOOD,
        summary=f"Recognised by {', '.join(report['source']['evidence'])}.",
        figures=[],
        sections=sections,
        footer=_FOOTER,
    )


def validate_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-validate.schema.json`."""
    found = report["summary"]
    counts = [count(found[severity], severity) for severity in _SEVERITIES]
    failed = any(drafter["exit_code"] for drafter in report["drafters"])
    engine = report["engine"]
    served = f"as served by {engine['id']} {engine['version']}" if engine else "for no engine"
    return Page(
        title=f"{count(len(report['drafters']), 'drafter')} checked {served}",
        verdict="\u2717 Findings" if failed else "\u2713 Pass",
        tone=BAD if failed else GOOD,
        summary=f"{', '.join(counts)}.",
        figures=[],
        sections=[
            section
            for drafter in report["drafters"]
            for section in findings_sections(drafter["findings"], drafter["name"])
        ],
        footer=_FOOTER,
    )


def findings_sections(findings: Sequence[Mapping[str, Any]], title: str = "Findings") -> Iterator[Section]:
    """A table of findings with their remedies; nothing where there are none."""
    rows = [
        [
            finding["code"],
            _SEVERITIES[finding["severity"]],
            finding.get("where", ""),
            finding["message"],
            finding.get("fix", ""),
        ]
        for finding in findings
    ]
    if rows:
        yield Section(title, [Table(["rule", "severity", "where", "what", "fix"], rows)])


def changes_sections(edits: Sequence[Mapping[str, Any]], tensors: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """What a plan changes in the config and does with tensors."""
    if edits:
        rows = [[edit["key"], *(_value(edit, side) for side in ("before", "after")), edit["reason"]] for edit in edits]
        yield Section("Config", [Table(["key", "before", "after", "why"], rows)])
    if tensors:
        made = [[step["name"], step["operation"], step["dtype"], str(step["shape"])] for step in tensors]
        yield Section("Tensors", [Table(["tensor", "operation", "dtype", "shape"], made)])


def _value(edit: Mapping[str, Any], side: str) -> str:
    return str(edit[side]) if side in edit else "\u2013"
