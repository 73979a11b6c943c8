"""`eaglehub upgrade`: an EAGLE-3 drafter becomes a 3.1 one that drafts as before."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.feature_options import FeatureOptions, feature_options
from eaglehub.cli.options import ReportOptions, paged_report_options, reading_options
from eaglehub.cli.output import finish, progress, say
from eaglehub.cli.places import fetched
from eaglehub.errors import UsageProblem
from eaglehub.upgrade.wishes import FC_INITS, Wishes

if TYPE_CHECKING:
    from eaglehub.features import Extraction
    from eaglehub.reading import Answers
    from eaglehub.upgrade.upgrade import Prepared, Upgrade

_PROMPTS = "mixed"


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("output", metavar="OUT", required=False)
@reading_options
@click.option("--fc-norm/--no-fc-norm", default=True, help="A norm on each of the target's states.", show_default=True)
@click.option(
    "--norm-output/--no-norm-output", default=True, help="Feed the state after the final norm back.", show_default=True
)
@click.option(
    "--fc-init",
    type=click.Choice(FC_INITS),
    default="calibrated",
    show_default=True,
    help="Where the states' measured RMS goes: fc_norm's weights, nowhere, or fc's columns.",
)
@click.option(
    "--feedback-gain",
    type=click.FloatRange(min=0, min_open=True),
    help="The constant that the final norm's weights become; the default is measured.",
)
@click.option("--no-calibrate", is_flag=True, help="Do not run the target; most drafters then need fine-tuning.")
@click.option(
    "--dequantize", is_flag=True, help="Make scaled 8-bit weights ordinary ones, so that they can be changed."
)
@click.option("--regenerate", is_flag=True, help="Have the target answer prompts that come with an answer.")
@feature_options
@click.option("--dry-run", is_flag=True, help="Show the plan; run and write nothing. OUT may be left out.")
@click.option("--force", is_flag=True, help="Replace OUT if it is a drafter's folder.")
@paged_report_options
def upgrade(
    source: str,
    output: str | None,
    forced_format: str | None,
    target: str | None,
    answers: Answers,
    fc_norm: bool,
    norm_output: bool,
    fc_init: str,
    feedback_gain: float | None,
    no_calibrate: bool,
    dequantize: bool,
    regenerate: bool,
    running: FeatureOptions,
    dry_run: bool,
    force: bool,
    options: ReportOptions,
) -> None:
    """Upgrade the EAGLE-3 drafter SRC to EAGLE 3.1 and write it as the folder OUT, without training.

    The target runs on some prompts: half of them calibrate, the other half measure what the upgrade costs.

    \b
    Examples:
      eaglehub upgrade drafter/ drafter-3.1/ --target target/
      eaglehub upgrade drafter/ drafter-3.1/ --target target/ --prompts prompts.jsonl --fc-init folded
      eaglehub upgrade drafter/ --target target/ --dry-run
    """
    from eaglehub.checkpoint import open_checkpoint
    from eaglehub.checkpoint.staging import check_destination
    from eaglehub.drafter.target import read_target
    from eaglehub.upgrade.report import UpgradeReport
    from eaglehub.upgrade.upgrade import Upgrade, prepare, rewrite

    if output is None and not dry_run:
        raise UsageProblem("missing argument OUT", fix="or use --dry-run, which writes nothing")
    if fc_init == "folded" and not fc_norm:
        raise UsageProblem("--fc-init has no meaning with --no-fc-norm")
    wishes = Wishes(
        fc_norm=fc_norm,
        norm_output=norm_output,
        fc_init=fc_init,
        calibrate=not no_calibrate,
        feedback_gain=feedback_gain,
        dequantize=dequantize,
    )
    prepared = prepare(
        open_checkpoint(fetched(source)),
        wishes,
        forced_format=forced_format,
        answers=answers,
        target=read_target(fetched(target)) if target else None,
    )
    if not prepared.todo:
        finish(UpgradeReport(Upgrade(prepared, prepared.conversion), "unchanged", running.depth), options)
    extraction = _extraction(prepared, running, regenerate) if wishes.calibrate else None
    size = extraction.nbytes if extraction else 0
    if dry_run:
        planned = rewrite(prepared, feedback_gain, None)
        finish(UpgradeReport(planned, "planned", running.depth, store_bytes=size), options)
    check_destination(Path(str(output)), force=force, protect=[Path(source)])
    result = _calibrated(prepared, extraction, running) if extraction else rewrite(prepared, feedback_gain, None)
    _write(result, Path(str(output)), running.depth, force)
    finish(UpgradeReport(result, "upgraded", running.depth, str(output), size), options)


def _extraction(prepared: Prepared, running: FeatureOptions, regenerate: bool) -> Extraction:
    from eaglehub.features import encode
    from eaglehub.prompts import load_prompts

    conversations = load_prompts(running.prompts or _PROMPTS, running.limit)
    source = running.source(prepared.measured_target)
    samples = encode(conversations, source.tokenizer(), regenerate=regenerate)
    return source.extraction(samples, prepared.layer_ids, max_tokens=running.max_tokens, ignore_eos=running.ignore_eos)


def _calibrated(prepared: Prepared, extraction: Extraction, running: FeatureOptions) -> Upgrade:
    from eaglehub.features import extract
    from eaglehub.upgrade.upgrade import calibrate

    with running.root() as root:
        size = f"up to {extraction.nbytes / 1e6:.0f} MB of states"
        say(f"running the target on {len(extraction.samples)} prompts, {size}")
        with progress(extraction.nbytes, "running the target") as advance:
            (store,) = extract(running.source(prepared.measured_target), [extraction], root, advance)
        say("measuring the drafter")
        return calibrate(prepared, store, running.depth)


def _write(result: Upgrade, output: Path, depth: int, force: bool) -> None:
    from eaglehub.convert import execute
    from eaglehub.upgrade.report import record
    from eaglehub.validate import output_faults

    conversion = result.conversion
    with progress(conversion.nbytes, "writing") as advance:
        execute(
            conversion,
            output,
            force=force,
            progress=advance,
            approve=partial(output_faults, layout="vllm", target=result.prepared.target),
            record={"upgrade": record(result, depth)},
        )
