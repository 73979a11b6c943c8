"""`eaglehub finetune`: a drafter learns from its target's answers, and is kept where it accepts more than before."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eaglehub.cli.feature_options import FeatureOptions, feature_options
from eaglehub.cli.options import ReportOptions, paged_report_options, reading_options
from eaglehub.cli.output import finish, progress, say
from eaglehub.cli.places import fetched
from eaglehub.cli.training_options import TrainingOptions, training_options
from eaglehub.errors import EnvironmentProblem, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eaglehub.drafter.target import Target
    from eaglehub.features import Source
    from eaglehub.finetune.checkpoints import Work
    from eaglehub.finetune.data import Conversations, Data
    from eaglehub.finetune.distributed import Workers
    from eaglehub.finetune.finetune import Prepared, Tuned
    from eaglehub.finetune.report import FinetuneReport
    from eaglehub.finetune.train import Evaluated, Metrics
    from eaglehub.reading import Answers
    from eaglehub.report.findings import Finding

_TELL_EVERY_S = 5


@click.command()
@click.argument("drafter", metavar="DRAFTER")
@click.argument("output", metavar="OUT")
@reading_options
@training_options
@click.option("--regenerate", is_flag=True, help="Have the target answer prompts that come with an answer.")
@feature_options
@click.option("--work", metavar="FOLDER", help="Keeps checkpoints and metrics.  [default: OUT.finetune]")
@click.option("--charts", type=click.Path(file_okay=False), metavar="FOLDER", help="Draw charts into a folder.")
@click.option("--force", is_flag=True, help="Replace OUT if it is a drafter's folder.")
@paged_report_options
def finetune(
    drafter: str,
    output: str,
    forced_format: str | None,
    target: str | None,
    answers: Answers,
    training: TrainingOptions,
    regenerate: bool,
    running: FeatureOptions,
    work: str | None,
    charts: str | None,
    force: bool,
    options: ReportOptions,
) -> None:
    """Train a part of DRAFTER on its target's answers and write it as the folder OUT.

    Every tenth conversation is held out: half of these choose the weights that are kept, the other half compare them
    with the start. Where training has made nothing better, OUT is DRAFTER as it was, and the exit code is 1.

    An interrupted run is taken up again by the same command. torchrun and `accelerate launch` spread it over GPUs.

    \b
    Examples:
      eaglehub finetune drafter-3.1/ tuned/ --target target/ --prompts conversations.jsonl
      eaglehub finetune drafter-3.1/ tuned/ --target target/ --prompts train.jsonl --held-out other.jsonl
      torchrun --nproc-per-node 8 -m eaglehub finetune drafter-3.1/ tuned/ --target target/ --prompts train.jsonl
    """
    from eaglehub.checkpoint import open_checkpoint
    from eaglehub.checkpoint.staging import check_destination
    from eaglehub.drafter.target import read_target
    from eaglehub.finetune.data import describe_run, prepare_data
    from eaglehub.report.figures import figure_class

    if target is None:
        raise UsageProblem("missing option --target", fix="its folder, with weights and tokenizer")
    check_destination(Path(output), force=force, protect=[Path(drafter)])
    given = _conversations(running, training, regenerate)
    if charts:
        figure_class()
    try:
        from eaglehub.finetune.checkpoints import Work
        from eaglehub.finetune.distributed import workers
        from eaglehub.finetune.finetune import prepare
        from eaglehub.finetune.report import FinetuneReport
    except ImportError as error:
        raise EnvironmentProblem("training needs torch", fix="pip install 'eaglehub[train]'") from error
    facts = read_target(fetched(target))
    prepared = prepare(
        open_checkpoint(fetched(drafter)),
        facts,
        training.settings.trainable,
        forced_format=forced_format,
        answers=answers,
    )
    source = running.source(facts)
    data = prepare_data(prepared, source, given, max_tokens=running.max_tokens, ignore_eos=running.ignore_eos)
    folder = Work(Path(work or f"{output.rstrip('/')}.finetune"))
    with workers(training.device) as crew:
        if crew.first:
            folder.open(describe_run(prepared, data, training.settings, running.depth))
        tuned = _tuned(prepared, source, data, training, running, folder, crew)
        if tuned is None:
            click.get_current_context().exit(0)
        report = FinetuneReport(tuned, training.settings, data.facts, running.depth, output)
        _write(report, facts, Path(output), force)
    if charts:
        from eaglehub.finetune.charts import draw

        draw(folder.metrics(), Path(charts))
    folder.close()
    finish(report, options)


def _conversations(running: FeatureOptions, training: TrainingOptions, regenerate: bool) -> Conversations:
    from eaglehub.finetune.data import Conversations, hold_out
    from eaglehub.prompts import load_prompts

    if running.prompts is None:
        raise UsageProblem("missing option --prompts", fix="conversations to train on")
    given = load_prompts(running.prompts, running.limit)
    learned, held_out = (given, load_prompts(training.held_out)) if training.held_out else hold_out(given)
    return Conversations(
        training=learned,
        held_out=held_out,
        augment=training.augment,
        context_tokens=training.context_tokens,
        regenerate=regenerate,
    )


def _tuned(
    prepared: Prepared,
    source: Source,
    data: Data,
    training: TrainingOptions,
    running: FeatureOptions,
    work: Work,
    crew: Workers,
) -> Tuned | None:
    from eaglehub.finetune.finetune import finetune as train

    if crew.first:
        say(f"{data.samples} conversations, up to {data.nbytes / 1e6:.0f} MB of the target's states")
    root = Path(running.features) if running.features else work.features
    try:
        with progress(data.nbytes, "running the target") as advance:
            return train(
                prepared, source, data.training, data.held_out, training.settings,
                root=root, work=work, workers=crew, depth=running.depth,
                tell=_Teller() if crew.first else lambda _: None, progress=advance,
            )  # fmt: skip
    except KeyboardInterrupt:
        say("the same command goes on from the last checkpoint")
        raise


class _Teller:
    """Tells of the run, a line every few seconds."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, entry: Metrics | Evaluated) -> None:
        from eaglehub.finetune.train import Evaluated

        if isinstance(entry, Evaluated):
            rates = " ".join(f"{rate:.3f}" for rate in entry.per_position)
            say(f"step {entry.step}: held-out acceptance length {entry.acceptance_length:.3f}, {rates}")
        elif time.monotonic() - self._told > _TELL_EVERY_S:
            self._told = time.monotonic()
            right = " ".join(f"{share:.2f}" for share in entry.right)
            left = timedelta(seconds=round((entry.steps - entry.step) * entry.seconds))
            say(
                f"step {entry.step} of {entry.steps}: loss {entry.loss:.3f}, right by draft step {right}, "
                f"{entry.tokens / entry.seconds:.0f} tokens/s, {left} left"
            )


def _write(report: FinetuneReport, target: Target, output: Path, force: bool) -> None:
    from eaglehub.convert import execute
    from eaglehub.finetune.report import inherited

    tuned = report.tuned
    with progress(tuned.conversion.nbytes, "writing") as advance:
        execute(
            tuned.conversion,
            output,
            force=force,
            progress=advance,
            approve=partial(_approve, tuned, target),
            record=inherited(tuned.conversion.checkpoint) | {"finetune": report.record},
        )


def _approve(tuned: Tuned, target: Target, folder: Path) -> Sequence[Finding]:
    """The errors that `eaglehub validate` sees in the output, whose untrained tensors must be what they were."""
    from eaglehub.checkpoint import open_checkpoint
    from eaglehub.finetune.finetune import check_untouched
    from eaglehub.validate import output_faults

    check_untouched(tuned, open_checkpoint(folder))
    return output_faults(folder, "vllm", target)
