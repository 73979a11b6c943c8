"""Several processes on one batch, started by torchrun or `accelerate launch`; without a launcher it is one."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed, nn

from eaglehub.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first process runs the target and evaluates while the others wait.
_PATIENCE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Workers:
    """This process among all.

    Attributes:
        rank: its number; 0 writes, evaluates and reports.
        count: how many there are.
        device: where this one computes.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module, with gradients averaged over all processes."""
        return nn.parallel.DistributedDataParallel(module) if self.count > 1 else module

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.count > 1:
            distributed.all_reduce(values)
        return values

    def tell(self, value: Any = None) -> Any:
        """What the first process says, in all of them."""
        if self.count > 1:
            held = [value]
            distributed.broadcast_object_list(held)
            return held[0]
        return value


@contextlib.contextmanager
def workers(device: str | None) -> Iterator[Workers]:
    """This process's place, by the variables that launchers set.

    Args:
        device: `cpu`, `cuda`, `cuda:1`; None for a GPU where there is one.

    Raises:
        EnvironmentProblem: there is no such device.
    """
    rank, count = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1")))
    chosen = _device(device)
    if count == 1:
        yield Workers(0, 1, chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Workers(rank, count, chosen)
    finally:
        distributed.destroy_process_group()


def _device(name: str | None) -> torch.device:
    local = os.environ.get("LOCAL_RANK")
    try:
        chosen = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        if chosen.type == "cuda" and chosen.index is None:
            chosen = torch.device("cuda", int(local or 0))
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise EnvironmentProblem(f"there is no device {name!r}", where="--device") from error
    return chosen
