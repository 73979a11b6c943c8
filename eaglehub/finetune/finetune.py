"""Fine-tuning in three steps: what is to be trained, the run, and the plan of what comes of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from eaglehub.convert import Conversion, plan_conversion, replan
from eaglehub.drafter.model import DraftModel, check_runnable
from eaglehub.drafter.shared import HEAD, find_shared, open_target
from eaglehub.errors import EaglehubError, UnusableInput
from eaglehub.features import Half, Store, extract
from eaglehub.features.choices import fill_choices
from eaglehub.finetune.batches import Loader, check
from eaglehub.finetune.loss import TargetHead
from eaglehub.finetune.parameters import prepare_training
from eaglehub.finetune.selection import Selector
from eaglehub.finetune.sets import trained_names
from eaglehub.finetune.train import Objective, Trainer
from eaglehub.plan.operations import SameForm
from eaglehub.report.findings import refusal
from eaglehub.scoring.load import load_model, to_tensor
from eaglehub.scoring.score import score

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.features import Extraction, Source
    from eaglehub.finetune.checkpoints import Work
    from eaglehub.finetune.distributed import Workers
    from eaglehub.finetune.settings import Settings
    from eaglehub.finetune.train import Evaluated, Metrics, Progress
    from eaglehub.plan.plan import TensorStep
    from eaglehub.reading import Answers
    from eaglehub.scoring.score import Score


@dataclass(frozen=True, slots=True)
class Prepared:
    """A drafter that can be trained.

    Attributes:
        conversion: of the drafter as it is, with a plan.
        drafter: what it is.
        target: its target.
        names: canonical names of the tensors to train.
    """

    conversion: Conversion
    drafter: Drafter
    target: Target
    names: list[str]

    @property
    def layer_ids(self) -> tuple[int, ...]:
        """The target states that it reads, in the IN convention."""
        return self.target.layer_ids_for(self.drafter)


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came of it.

    Attributes:
        prepared: what was trained.
        conversion: with the plan of what is to be written: the trained drafter, or the start where that is no better.
        progress: the run.
        longest: tokens of the longest conversation trained on.
        tokens: of all of them.
        before, after: scores on the held-out prompts that nothing was selected by.
    """

    prepared: Prepared
    conversion: Conversion
    progress: Progress
    longest: int
    tokens: int
    before: Score
    after: Score

    @property
    def better(self) -> bool:
        """Whether the trained drafter was kept."""
        return self.conversion is not self.prepared.conversion


@dataclass(frozen=True, eq=False)
class Trained(SameForm):
    """The tensor's values are replaced by trained ones of the same shape and dtype."""

    values: np.ndarray[Any, Any]

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:  # noqa: ARG002
        """The trained values."""
        return self.values

    def describe(self) -> str:
        """With a digest of the values."""
        digest = hashlib.sha256(np.ascontiguousarray(self.values).view(np.uint8).tobytes()).hexdigest()
        return f"trained ({digest[:12]})"


def prepare(
    checkpoint: Checkpoint,
    target: Target,
    trainable: str,
    *,
    forced_format: str | None = None,
    answers: Answers | None = None,
) -> Prepared:
    """Read the drafter and see what is to be trained of it.

    Raises:
        UnusableInput: it cannot be read without doubt, cannot be run here, or does not fit the target.
        UsageProblem: it has nothing of what is to be trained.
    """
    conversion = plan_conversion(checkpoint, forced_format=forced_format, answers=answers, target=target)
    drafter = conversion.reading.drafter
    if conversion.plan is None or drafter is None:
        raise refusal(conversion.findings)
    check_runnable(drafter)
    return Prepared(conversion, drafter, target, trained_names(drafter, trainable))


def finetune(
    prepared: Prepared,
    source: Source,
    training: Extraction,
    held_out: Extraction,
    settings: Settings,
    *,
    root: Path,
    work: Work,
    workers: Workers,
    depth: int,
    tell: Callable[[Metrics | Evaluated], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Tuned | None:
    """Train, select on one half of the held-out prompts, and compare with the start on the other half.

    In all processes but the first there is no result.

    Args:
        prepared: the drafter.
        source: its target.
        training: what the target is run on to train, made with `prepared.layer_ids`.
        held_out: the same to judge by.
        settings: how to train.
        root: folder of feature stores.
        work: the run's folder, opened.
        workers: the processes.
        depth: draft positions K to judge.
        tell: called with each step's metrics and each evaluation.
        progress: called with the number of bytes of target states since the last call.

    Raises:
        UnusableInput: there is nothing to learn from, a conversation is too long, or the loss is not finite.
        EnvironmentProblem: no room, no permission, or a package is missing.
    """
    drafter, names = prepared.drafter, prepared.names
    whole_head = read_head(source.folder).to(workers.device)
    if workers.first:
        for store in extract(source, [training, held_out], root, progress):
            fill_choices(store, whole_head)
    workers.tell()
    store, judged = Store(root, training), Store(root, held_out)
    spans = store.spans()
    check(spans, drafter.max_position_embeddings, settings.ttt_steps)
    steps = prepared.conversion.reading.tensors
    start = load_model(
        prepared.conversion.checkpoint, steps.values(), drafter, source.folder, device=str(workers.device)
    )
    selector = Selector(start, {name: steps[name].dtype for name in names}, Half(judged, 0), depth)
    ids = start.target_ids(torch.arange(drafter.draft_vocab_size, device=workers.device))
    head = target_head(prepared.target, whole_head[ids])
    loader = Loader(
        store=store,
        spans=spans,
        depth=settings.ttt_steps,
        batch_tokens=settings.batch_tokens,
        draft_ids=torch.zeros(len(whole_head), dtype=torch.bool).index_fill_(0, ids.cpu(), True),
        reads_aux=drafter.num_aux_hidden_states > 0,
        seed=settings.seed,
    )
    if not any(map(loader.judges, range(len(spans)))):
        raise UnusableInput("none of the answers' tokens is in the drafter's draft vocabulary", where="--prompts")
    objective = Objective(_trainable(start, names, head, settings), head, settings.ttt_steps)
    del whole_head
    run = Trainer(objective, names, loader, selector, settings, work, workers, tell).run()
    if not workers.first:
        return None
    before, after = (score(selector.model(arrays), Half(judged, 1), depth) for arrays in ({}, run.best))
    kept = run.best_step > 0 and after.every_position.acceptance_length >= before.every_position.acceptance_length
    conversion = _rewritten(prepared, run.best) if kept else prepared.conversion
    lengths = [span.tokens for span in spans]
    return Tuned(prepared, conversion, run, max(lengths), sum(lengths), before, after)


def check_untouched(tuned: Tuned, written: Checkpoint) -> None:
    """Compare what was not trained bit by bit with the start.

    Raises:
        EaglehubError: a tensor differs.
    """
    plan, checkpoint = tuned.conversion.plan, tuned.conversion.checkpoint
    for step in plan.steps if plan else ():
        if not any(isinstance(operation, Trained) for operation in step.operations):
            before, after = (
                _digest(chunks) for chunks in (step.output(checkpoint).chunks(), written.chunks(step.name))
            )
            if before != after:
                raise EaglehubError("changed, although it was not trained", where=step.name)


def read_head(folder: Path) -> Tensor:
    """The target's lm_head, [V, Ht] float32.

    Raises:
        UnusableInput: it has none that can be found.
    """
    weights = open_target(folder)
    return to_tensor(weights.read(find_shared(weights, HEAD)), "float32")


def target_head(target: Target, rows: Tensor) -> TargetHead:
    """Rows of the target's head with what its family does to logits besides."""
    factor = float(target.text.get("logit_scale") or 1) / float(target.text.get("logits_scaling") or 1)
    cap = target.text.get("final_logit_softcapping")
    return TargetHead(rows * factor, float(cap) if cap else None)


def _trainable(start: DraftModel, names: list[str], head: TargetHead, settings: Settings) -> DraftModel:
    """The same drafter with copies of what is trained, so that the start stays as it is."""
    own = {name: tensor.clone() if name in names else tensor for name, tensor in start.state_dict().items()}
    model = DraftModel.load(start.drafter, own)
    prepare_training(model, names, head.rows)
    if settings.dtype == "bfloat16":  # frozen matrices would be cast again in every product
        for parameter in model.parameters():
            if not parameter.requires_grad and parameter.dim() > 1:
                parameter.data = parameter.data.to(torch.bfloat16)
    model.recompute(settings.recompute)
    return model


def _rewritten(prepared: Prepared, arrays: dict[str, np.ndarray[Any, Any]]) -> Conversion:
    tensors: dict[str, TensorStep] = dict(prepared.conversion.reading.tensors)
    tensors |= {name: tensors[name].then(Trained(values)) for name, values in arrays.items()}
    return replan(prepared.conversion, prepared.drafter, tensors, dropped=(), reasons={}, target=prepared.target)


def _digest(chunks: Any) -> str:
    hashed = hashlib.sha256()
    for chunk in chunks:
        hashed.update(np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()
