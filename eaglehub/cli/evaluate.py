"""`eaglehub evaluate`: acceptance and drift of a drafter, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.feature_options import FeatureOptions, feature_options
from eaglehub.cli.options import ReportOptions, paged_report_options, reading_options
from eaglehub.cli.output import finish, progress, say
from eaglehub.cli.places import fetched
from eaglehub.errors import UsageProblem
from eaglehub.scoring.suites import SUITES, build_suites

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eaglehub.evaluate.evaluate import Evaluation
    from eaglehub.features import Sample, Source
    from eaglehub.reading import Answers
    from eaglehub.scoring.candidate import Candidate


@click.command()
@click.argument("drafter", metavar="DRAFTER")
@reading_options
@click.option("--compare", metavar="OTHER", help="Another drafter for the same target, scored on the same answers.")
@click.option("--suite", "suites", type=click.Choice(SUITES), multiple=True, help="Only these; can be repeated.")
@feature_options
@click.option("--charts", type=click.Path(file_okay=False), metavar="FOLDER", help="Draw charts into a folder.")
@paged_report_options
def evaluate(
    drafter: str,
    forced_format: str | None,
    target: str | None,
    answers: Answers,
    compare: str | None,
    suites: tuple[str, ...],
    running: FeatureOptions,
    charts: str | None,
    options: ReportOptions,
) -> None:
    """Measure how many of DRAFTER's tokens the target would accept, and how it drifts from one draft step to the next.

    The target answers the prompts greedily; the drafter is judged by these answers, step by step as an engine walks
    through them. Options about what DRAFTER does not say are for DRAFTER alone, not for OTHER.

    \b
    Examples:
      eaglehub evaluate drafter/ --target target/
      eaglehub evaluate drafter/ --target target/ --compare drafter-3.1/ --prompts prompts.jsonl
      eaglehub evaluate drafter/ --target target/ --suite plain --json
    """
    from eaglehub.checkpoint import open_checkpoint
    from eaglehub.drafter.target import read_target
    from eaglehub.evaluate.report import EvaluateReport
    from eaglehub.prompts import load_prompts, load_suite
    from eaglehub.report.figures import figure_class
    from eaglehub.scoring.candidate import read_candidate

    if target is None:
        raise UsageProblem("missing option --target", fix="its folder, with weights and tokenizer")
    if charts:
        figure_class()
    facts = read_target(fetched(target))
    candidate = read_candidate(open_checkpoint(fetched(drafter)), facts, forced_format=forced_format, answers=answers)
    other = read_candidate(open_checkpoint(fetched(compare)), facts) if compare else None
    source = running.source(facts)
    chat, long = load_prompts(running.prompts or "chat", running.limit), load_suite("long")[: running.limit]
    samples = build_suites(suites, chat, long, source.tokenizer())
    with running.root() as root:  # one for both: they are judged by the same answers
        first = _evaluate(candidate, source, samples, running, root)
        second = _evaluate(other, source, samples, running, root) if other else None
    report = EvaluateReport(facts.name, running.depth, running.max_tokens, first, second, facts.revision)
    if charts:
        from eaglehub.evaluate.charts import draw

        draw(report, Path(charts))
    finish(report, options)


def _evaluate(
    candidate: Candidate, source: Source, samples: Mapping[str, list[Sample]], running: FeatureOptions, root: Path
) -> Evaluation:
    from eaglehub.evaluate.evaluate import evaluate as score_suites
    from eaglehub.evaluate.evaluate import extractions

    wanted = dict(
        zip(samples, extractions(candidate, source, samples, running.max_tokens, running.ignore_eos), strict=True)
    )
    total = sum(extraction.nbytes for extraction in wanted.values())
    count = sum(len(extraction.samples) for extraction in wanted.values())
    say(f"{candidate.checkpoint.name}: {count} prompts, up to {total / 1e6:.0f} MB of the target's states")
    with progress(total, "running the target") as advance:
        return score_suites(candidate, source, wanted, root, running.depth, advance)
