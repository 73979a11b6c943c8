"""The training loop: unrolled draft steps (training-time test) on the target's own answers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from eaglehub.errors import UnusableInput
from eaglehub.finetune.batches import Batch, batches_from, shares
from eaglehub.finetune.loss import Judged, Judgement, TargetHead, soft_cross_entropy
from eaglehub.finetune.parameters import raw_parameters, trained_weights
from eaglehub.finetune.sets import RELATIVE
from eaglehub.scoring.load import to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eaglehub.drafter.model import DraftModel
    from eaglehub.finetune.batches import Loader
    from eaglehub.finetune.checkpoints import Work
    from eaglehub.finetune.distributed import Workers
    from eaglehub.finetune.selection import Arrays, Selector
    from eaglehub.finetune.settings import Settings

_BETAS = (0.9, 0.95)


class Metrics(NamedTuple):
    """One step.

    Attributes:
        step, steps: its number from 1 on, and of how many.
        loss: weighted mean over drafts.
        right: share of right drafts at each step, the ones before given.
        rate: peak learning rate times the schedule's factor.
        gradient: its norm before clipping.
        tokens: positions.
        seconds: wall time.
    """

    step: int
    steps: int
    loss: float
    right: list[float]
    rate: float
    gradient: float
    tokens: int
    seconds: float


class Evaluated(NamedTuple):
    """Acceptance on held-out prompts after `step` steps."""

    step: int
    acceptance_length: float
    per_position: list[float]


@dataclass(slots=True)
class Progress:
    """How far a run has come; all that a checkpoint holds besides weights and the optimizer's state."""

    step: int = 0
    curve: list[Evaluated] = field(default_factory=list)
    best: Arrays = field(default_factory=dict)
    rolled_back: bool = False

    @property
    def best_step(self) -> int:
        """The earliest step with the longest acceptance; 0 is the start."""
        return max(self.curve, key=lambda each: (each.acceptance_length, -each.step)).step

    @property
    def stale(self) -> int:
        """Evaluations since the best one."""
        return sum(each.step > self.best_step for each in self.curve)


class Objective(nn.Module):  # type: ignore[misc]
    """A drafter with the loss of its unrolled steps."""

    def __init__(self, model: DraftModel, head: TargetHead, depth: int) -> None:
        super().__init__()
        self.model, self.head, self.depth = model, head, depth

    def forward(self, batch: Batch) -> Judgement:
        """Loss and right drafts of a batch."""
        chains = self.model.chains(batch.aux, batch.tokens, self.depth, batch.packing)
        states = torch.cat([after[0] for _, after in chains])
        return soft_cross_entropy(states, self.model.lm_head.weight, self.head, batch.judged)


class Trainer:
    """One run, from wherever its checkpoint left it.

    Args:
        objective: with a model that `prepare_training` has seen.
        names: canonical names of what is trained.
        loader: of the training samples.
        selector: chooses what is kept; asked in the first process only.
        settings: how.
        work: the run's folder.
        workers: the processes.
        tell: called with each step's metrics and each evaluation.
    """

    def __init__(
        self,
        objective: Objective,
        names: list[str],
        loader: Loader,
        selector: Selector,
        settings: Settings,
        work: Work,
        workers: Workers,
        tell: Callable[[Metrics | Evaluated], None] = lambda _: None,
    ) -> None:
        self.objective, self.names, self.loader, self.selector = objective, names, loader, selector
        self.settings, self.work, self.workers, self.tell = settings, work, workers, tell
        raw = list(raw_parameters(objective.model))
        self.parameters = {name: parameter for name, parameter, _ in raw}
        self.starts = [each.detach().clone() for each in self.parameters.values()] if settings.anchor else []
        scales = [RELATIVE if relative else 1.0 for _, _, relative in raw]
        groups = [
            {"params": [each], "scale": scale} for each, scale in zip(self.parameters.values(), scales, strict=True)
        ]
        self.optimizer = torch.optim.AdamW(groups, settings.rate, _BETAS, weight_decay=0.0)
        self.wrapped = workers.wrap(objective)
        self.steps = _steps(loader, settings)
        self.progress = Progress()

    def run(self) -> Progress:
        """Train to the end; the best weights are in the result.

        Raises:
            UnusableInput: the loss is not finite, twice.
        """
        if not self._restore():
            if self.workers.first:
                self.work.forget_after(-1)
            self._evaluate()
            self._save()
        while self.progress.step < self.steps and self.progress.stale < self.settings.patience:
            self._stretch()
        return self.progress

    def _stretch(self) -> None:
        """The steps up to the next evaluation, and that."""
        progress, settings = self.progress, self.settings
        stop = min(progress.step + settings.evaluate_every, self.steps)
        for step, samples in batches_from(self.loader, progress.step, stop):
            metrics = self._step(step, samples)
            if not (math.isfinite(metrics.loss) and math.isfinite(metrics.gradient)):
                self._roll_back(step, samples)
                return
            progress.step = step + 1
            self._log(metrics)
        self._evaluate()
        self._save()

    def _step(self, step: int, samples: Sequence[int]) -> Metrics:
        settings, workers, started = self.settings, self.workers, time.perf_counter()
        batch = self._share(samples)
        self._set_rate(step)
        self.optimizer.zero_grad()
        with torch.autocast(workers.device.type, torch.bfloat16, enabled=settings.dtype == "bfloat16"):
            loss, right = self.wrapped(batch)
        drafts = (batch.judged.weights > 0).sum(1)
        sums = workers.total(torch.cat([loss.detach()[None], batch.judged.weights.sum()[None], right, drafts]).double())
        total, weight = sums[:2].tolist()
        # Processes are averaged over, and each has only summed its own drafts.
        (loss * (workers.count / max(weight, 1e-9))).backward()
        for parameter, start in zip(self.parameters.values(), self.starts, strict=False):
            parameter.grad.add_(parameter.detach() - start, alpha=settings.anchor)
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), settings.clip)
        if torch.isfinite(norm):
            self.optimizer.step()
        shares_right = (sums[2 : 2 + len(right)] / sums[2 + len(right) :].clamp(min=1)).tolist()
        tokens = sum(self.loader.spans[each].tokens - 1 for each in samples)
        rate = settings.rate * settings.factor(step, self.steps)
        seconds = time.perf_counter() - started
        return Metrics(
            step + 1, self.steps, total / max(weight, 1e-9), shares_right, rate, float(norm), tokens, seconds
        )

    def _share(self, samples: Sequence[int]) -> Batch:
        """This process's part of a batch; where there are too few samples, one of another's that does not count."""
        own = shares(samples, self.loader.spans, self.workers.count)[self.workers.rank]
        batch = self.loader.batch(own or samples[:1])
        aux, tokens, packing, (target, rows, weights) = batch
        device, weights = self.workers.device, weights if own else torch.zeros_like(weights)
        judged = Judged(target.to(device).float(), rows.to(device), weights.to(device))
        return Batch(aux.to(device).float(), tokens.to(device), packing, judged)

    def _set_rate(self, step: int) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate * group["scale"] * self.settings.factor(step, self.steps)

    def _evaluate(self) -> None:
        progress = self.progress
        evaluated = None
        arrays: Arrays = {}
        if self.workers.first:
            arrays = self.selector.rounded(trained_weights(self.objective.model, self.names))
            acceptance = self.selector.measure(arrays)
            rates = acceptance.per_position_acceptance_rates
            evaluated = Evaluated(progress.step, acceptance.acceptance_length, rates)
        progress.curve.append(self.workers.tell(evaluated))
        if progress.best_step == progress.step:
            progress.best = arrays
        self._log(progress.curve[-1])

    def _roll_back(self, step: int, samples: Sequence[int]) -> None:
        if self.progress.rolled_back:
            numbers = ", ".join(str(each + 1) for each in samples)
            raise UnusableInput(
                f"the loss is not finite at step {step + 1}, and was not at a second try (conversations {numbers})",
                where="training",
                fix="a smaller --lr, or leave them out",
            )
        self._restore()
        self.progress.rolled_back = True

    def _log(self, entry: Metrics | Evaluated) -> None:
        if self.workers.first:
            self.work.log(entry._asdict())
        self.tell(entry)

    def _save(self) -> None:
        progress = self.progress
        if not self.workers.first:
            return
        self.work.save(
            {
                "parameters": {name: each.detach() for name, each in self.parameters.items()},
                "optimizer": self.optimizer.state_dict(),
                "step": progress.step,
                "curve": [each._asdict() for each in progress.curve],
                "best": {name: to_tensor(array, "float32") for name, array in progress.best.items()},
            }
        )

    def _restore(self) -> bool:
        self.workers.tell()  # the first process is done with writing
        saved: dict[str, Any] | None = self.work.load()
        if saved is None:
            return False
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(saved["parameters"][name])
        self.optimizer.load_state_dict(saved["optimizer"])
        curve = [Evaluated(**each) for each in saved["curve"]]
        best = self.selector.rounded(saved["best"]) if saved["best"] else {}
        self.progress = Progress(saved["step"], curve, best, self.progress.rolled_back)
        if self.workers.first:
            self.work.forget_after(self.progress.step)
        return True


def _steps(loader: Loader, settings: Settings) -> int:
    counts = [sum(len(loader.epoch(epoch)) for epoch in range(settings.epochs))] if settings.epochs else []
    return min(counts + ([settings.max_steps] if settings.max_steps else []))
