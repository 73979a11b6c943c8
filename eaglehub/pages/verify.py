"""The page of a verification: the verdict, what is wrong, then what was measured on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.pages.page import BAD, CAUTION, GOOD, MUTED, Bar, Bars, Cell, Facts, Figure, Page, Problem, Section, Table
from eaglehub.pages.words import count, interval, milliseconds, position_bars, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_VERDICTS = {"pass": ("\u2713 Pass", GOOD), "fail": ("\u2717 Fail", BAD)}
CHECKED = {
    "pass": Cell("\u2713 pass", GOOD),
    "fail": Cell("\u2717 fail", BAD),
    "warn": Cell("! warning", CAUTION),
    "skipped": Cell("\u2013 skipped", MUTED),
}
_CONDITIONS = {
    "long": "Acceptance length by context length",
    "template": "Acceptance length by template",
    "odd_system": "Acceptance length under odd system prompts",
}
_CONDITION_NAMES = {
    "plain": "plain chat",
    "no_bos": "without BOS",
    "no_template": "without the template",
    "neither": "without either",
    "other_template": "another template",
    "odd_system": "odd system prompts",
}
_FLAGS = ("eagle_aux_hidden_state_layer_ids", "fc_norm", "norm_output", "norm_before_fc", "norm_before_residual")


def verify_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-verify.schema.json`."""
    return _page(report, f"{report['drafter']['name']} on {report['target']['name']}", _run_section(report))


def server_page(report: Mapping[str, Any]) -> Page:
    """From the JSON of `report-server.schema.json`."""
    server = report["server"]
    pairs = [
        ("model", server["model"]),
        ("engine", f"vLLM {server['vllm']}"),
        ("prompts", _prompts(report["prompts"])),
        ("time", f"{report['seconds']:.0f} s"),
    ]
    return _page(report, f"{server['model']} on a running server", Section("What was asked", [Facts(pairs)]))


def _page(report: Mapping[str, Any], title: str, run: Section) -> Page:
    verdict, tone = _VERDICTS[report["verdict"]]
    return Page(
        title=title,
        verdict=verdict,
        tone=tone,
        summary=_summary(report["checks"]),
        figures=list(_figures(report)),
        sections=[*_measured(report), _checks(report["checks"]), run],
        footer=f"eaglehub {report['eaglehub']}",
    )


def _figures(report: Mapping[str, Any]) -> Iterator[Figure]:
    """The numbers that a reader looks for first."""
    if acceptance := report.get("acceptance"):
        note = f"95 % interval {interval(acceptance['confidence_interval'])}; 1 is no gain"
        yield Figure("acceptance length", f"{acceptance['acceptance_length']:.3f}", note)
    for level in report.get("fast", [])[:1]:
        yield _speed_figure(level)
    verdicts = [check["verdict"] for check in report["checks"]]
    rest = [f"{verdicts.count(word)} {word}" for word in ("fail", "warn", "skipped") if word in verdicts]
    yield Figure("checks passed", f"{verdicts.count('pass')} of {len(verdicts)}", ", ".join(rest))


def _measured(report: Mapping[str, Any]) -> Iterator[Section]:
    """What is wrong, and what was measured; only what the report has."""
    if problems := [_problem(check) for check in _troubled(report["checks"])]:
        failed = any(problem.tone == BAD for problem in problems)
        yield Section("What is wrong" if failed else "What to know", problems)
    yield from _readings(report["checks"])
    sides = [
        (name, report[key])
        for name, key in (("this drafter", "acceptance"), ("compared with", "compared_acceptance"))
        if report.get(key)
    ]
    if sides and sides[0][1]["num_drafts"]:
        drafts = count(sides[0][1]["num_drafts"], "draft")
        yield Section("Acceptance by draft position", [position_bars(sides)], f"Of {drafts}, by vLLM's own counters.")
        if len(categories := _by_category(report)) > 1:
            yield Section("Acceptance length by kind of prompt", [Bars("acceptance length", [""], categories)])
    yield from _robust(report.get("robust", ()))
    if levels := report.get("fast"):
        yield Section("Speed by number of users", [_speed_bars(levels), _speed_table(levels)], _speed_note(levels))


def _checks(checks: Sequence[Mapping[str, Any]]) -> Section:
    """Every check with its verdict."""
    rows = [[check["id"], CHECKED[check["verdict"]], _found(check)] for check in checks]
    return Section("Checks", [Table(["check", "verdict", "found"], rows)])


def _found(check: Mapping[str, Any]) -> str:
    wanted = f" (wanted: {check['threshold']})" if check["threshold"] and check["verdict"] != "pass" else ""
    return f"{check['summary']}{wanted}"


def _summary(checks: Sequence[Mapping[str, Any]]) -> str:
    failed = [check["title"] for check in checks if check["verdict"] == "fail"]
    if failed:
        return f"Not so: {'; '.join(failed)}."
    return "Every check that applies passed."


def _troubled(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Failures before warnings, and the cause of the others before them."""
    troubled = [check for check in checks if check["verdict"] in ("fail", "warn")]
    return sorted(troubled, key=lambda check: (check["verdict"] == "warn", not check["id"].startswith("diagnosis.")))


def _problem(check: Mapping[str, Any]) -> Problem:
    evidence = check["evidence"] if isinstance(check["evidence"], dict) else {}
    details = [("wanted", check["threshold"]), ("to do", str(evidence.get("fix") or ""))]
    return Problem(
        title=f"{check['id']}: {check['title']}",
        text=check["summary"],
        tone=BAD if check["verdict"] == "fail" else CAUTION,
        details=[pair for pair in details if pair[1]],
        log=[str(line) for line in evidence.get("log", ())],
    )


def _readings(checks: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """What the drafter would do if its file were read otherwise, when that was asked because something is wrong."""
    for check in checks:
        if check["id"] == "diagnosis.cause" and check["verdict"] == "fail":
            declared, *others = check["evidence"].get("readings") or [None]
            if declared:
                readings = [declared, *sorted(others, key=lambda each: -each["probability"])]
                groups = [(each["name"], [Bar(each["probability"], f"{each['probability']:.3f}")]) for each in readings]
                bars = Bars("probability of the target's token", [""], groups)
                yield Section("If the file were read otherwise", [bars], "In the reference model, on the same states.")


def _by_category(report: Mapping[str, Any]) -> list[tuple[str, list[Bar]]]:
    counts: dict[str, list[int]] = {}
    for category, prompt in zip(report["prompts"]["categories"], report["acceptance"]["per_prompt"], strict=False):
        if prompt:
            seen = counts.setdefault(category or "other", [0, 0, 0])
            for place, more in enumerate((1, prompt["num_drafts"], prompt["num_accepted_tokens"])):
                seen[place] += more
    lengths = {category: 1 + accepted / max(drafts, 1) for category, (_, drafts, accepted) in counts.items()}
    return [
        (category, [Bar(length, f"{length:.2f} ({count(counts[category][0], 'prompt')})")])
        for category, length in lengths.items()
    ]


def _robust(suites: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """Each condition beside plain chat, by kind of condition."""
    plain = [suite for suite in suites if suite["ratio"] is None]
    for kind, title in _CONDITIONS.items():
        own = [suite for suite in suites if suite["ratio"] is not None and _kind(suite["suite"]) == kind]
        if own:
            rows = plain + own
            groups = [(_condition(each["suite"]), _suite_bars(each)) for each in rows]
            sides = ["this drafter", "compared with"][: len(groups[0][1])]
            bars = Bars("acceptance length (95 % interval; share of plain chat's)", sides, groups)
            yield Section(title, [bars, *_suite_differences(rows)])


def _suite_differences(suites: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """To the drafter that it is compared with."""
    rows = [
        [_condition(suite["suite"]), f"{compared['difference']:+.3f} \u00b1 {compared['half_width']:.3f}"]
        for suite in suites
        if (compared := suite["compared"])
    ]
    if rows:
        yield Table(["", "difference (95 %, paired by prompt)"], rows, numbers=True)


def _kind(suite: str) -> str:
    return {"long": "long", "odd_system": "odd_system"}.get(suite.partition("-")[0], "template")


def _condition(suite: str) -> str:
    name, _, tokens = suite.partition("-")
    return f"up to {tokens} tokens" if tokens else _CONDITION_NAMES.get(name, name)


def _suite_bars(suite: Mapping[str, Any]) -> list[Bar]:
    own = _length_bar(suite["acceptance"], "" if suite["ratio"] is None else f" ({suite['ratio']:.0%})")
    return [own, _length_bar(suite["compared"]["acceptance"], "")] if suite["compared"] else [own]


def _length_bar(acceptance: Mapping[str, Any], note: str) -> Bar:
    length, bounds = acceptance["acceptance_length"], acceptance["confidence_interval"]
    return Bar(length, f"{length:.2f}{note}", bounds["low"], bounds["high"])


def _speed_figure(level: Mapping[str, Any]) -> Figure:
    rate = f"{level['drafter']['tokens_per_second_per_user']:.1f} tokens/s"
    if speedup := level["speedup"]:
        return Figure("speed for one user", f"{speedup['value']:.2f}\u00d7", f"{rate} with the drafter")
    return Figure("speed for one user", rate)


def _speed_bars(levels: Sequence[Mapping[str, Any]]) -> Bars:
    sides = _sides(levels)
    groups = [(count(level["concurrency"], "user"), [_speed_bar(level, side) for side in sides]) for level in levels]
    return Bars("output tokens per second per user", list(sides.values()), groups)


def _sides(levels: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = {"drafter": "with drafter", "target": "without drafter"}
    return {side: name for side, name in names.items() if levels[0][side]}


def _speed_bar(level: Mapping[str, Any], side: str) -> Bar:
    rate = level[side]["tokens_per_second_per_user"]
    ratio = f" ({level['speedup']['value']:.2f}\u00d7)" if side == "drafter" and level["speedup"] else ""
    return Bar(rate, f"{rate:.1f}{ratio}")


def _speed_table(levels: Sequence[Mapping[str, Any]]) -> Table:
    measures: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "first token, ms": lambda pace: milliseconds(pace["first_token_s"]),
        "between tokens, ms": lambda pace: milliseconds(pace["inter_token_s"]),
        "tokens/s, all users": lambda pace: f"{pace['tokens_per_second']:.1f}",
    }
    rows = [
        [f"{measure}, {name}", *(shown(level[side]) for level in levels)]
        for measure, shown in measures.items()
        for side, name in _sides(levels).items()
    ]
    if levels[0]["speedup"]:
        rows.insert(0, ["speedup (95 %)", *(_speedup(level["speedup"]) for level in levels)])
    return Table(["", *(count(level["concurrency"], "user") for level in levels)], rows, numbers=True)


def _speedup(speedup: Mapping[str, float]) -> str:
    return f"{speedup['value']:.2f} ({interval(speedup, 2)})"


def _speed_note(levels: Sequence[Mapping[str, Any]]) -> str:
    sizes = ", ".join(str(level["requests"]) for level in levels)
    return f"Requests: {sizes}, all answers equally long. Latencies: median (90th percentile) over requests."


def _run_section(report: Mapping[str, Any]) -> Section:
    drafter, target, prompts, config = (report[key] for key in ("drafter", "target", "prompts", "config"))
    pairs = [
        ("drafter", _named(drafter)),
        ("drafter's digest", drafter["digest"]),
        *((key, str(drafter["config"][key]).lower()) for key in _FLAGS if key in drafter["config"]),
        ("target", f"{_named(target)} ({', '.join(target['architectures'])})"),
        ("prompts", _prompts(prompts)),
        ("drafted tokens a step", str(config["num_speculative_tokens"])),
        ("parallelism", f"tensor {config['tensor_parallel_size']}, pipeline {config['pipeline_parallel_size']}"),
        *_engine(report["engine"]),
        *_hardware(report["hardware"]),
        ("time", f"{report['time']['total_s']:.0f} s, of which vLLM {report['time']['vllm_s']:.0f} s"),
    ]
    return Section("What was run", [Facts(pairs)])


def _prompts(prompts: Mapping[str, Any]) -> str:
    left_out = f", {prompts['left_out']} left out as too long" if prompts["left_out"] else ""
    return f"{prompts['count']}{left_out}, {prompts['max_tokens']} tokens each, digest {short(prompts['digest'])}"


def _named(model: Mapping[str, Any]) -> str:
    return f"{model['name']} at {short(model['revision'])}" if model.get("revision") else str(model["name"])


def _engine(engine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "engine", f"vLLM {engine['vllm']}, {engine['runner'].upper()} model runner, {engine['dtype']}"
    yield "longest sequence", f"{engine['max_model_len']} tokens"


def _hardware(hardware: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for gpu in hardware["gpus"]:
        yield "GPU", " ".join(filter(None, (gpu["vendor"], gpu["name"], gpu["driver"] and f"driver {gpu['driver']}")))
    yield "CPU", f"{hardware['cpu']}, {count(hardware['cores'], 'core')}"
