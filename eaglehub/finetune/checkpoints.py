"""A run's own folder: checkpoints that are whole or not there, and one line of metrics a step."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from eaglehub.checkpoint.files import replace_file
from eaglehub.errors import EnvironmentProblem, UnusableInput, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_RUN, _CHECKPOINT, METRICS = "run.json", "checkpoint.pt", "metrics.jsonl"


@dataclass(frozen=True, slots=True)
class Work:
    """Where a run keeps what it needs to go on after it was interrupted."""

    folder: Path

    @property
    def features(self) -> Path:
        """Where the target's states go, unless they are to be kept elsewhere."""
        return self.folder / "features"

    def open(self, run: Mapping[str, Any]) -> None:
        """Make the folder for a run, or find it again.

        Args:
            run: everything that the run's result depends on.

        Raises:
            UsageProblem: it holds another run.
            EnvironmentProblem: it cannot be written.
        """
        file = self.folder / _RUN
        described = json.dumps(run, indent=2, sort_keys=True) + "\n"
        try:
            self.folder.mkdir(exist_ok=True)
            if not (self.folder / _CHECKPOINT).exists():
                replace_file(file, described.encode())
            elif not file.exists() or file.read_text(encoding="utf-8") != described:
                raise UsageProblem(
                    "holds an unfinished run with other data or settings", where=str(self.folder), fix="remove it"
                )
        except FileNotFoundError as error:
            raise UsageProblem(
                "the folder to write into does not exist", where=str(self.folder.parent), fix="create it"
            ) from error
        except OSError as error:
            raise EnvironmentProblem(f"cannot be written: {error.strerror}", where=str(self.folder)) from error

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint.

        Raises:
            EnvironmentProblem: the disk is full.
        """
        stream = io.BytesIO()
        torch.save(dict(state), stream)
        try:
            replace_file(self.folder / _CHECKPOINT, stream.getvalue())
        except OSError as error:
            raise EnvironmentProblem(f"cannot be written: {error.strerror}", where=str(self.folder)) from error

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint; None when there is none yet.

        Raises:
            UnusableInput: it is damaged.
        """
        file = self.folder / _CHECKPOINT
        if not file.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # whatever pickle or zip make of a damaged file
            raise UnusableInput("is damaged", where=str(file), fix="remove it, and the run starts anew") from error
        return state

    def close(self) -> None:
        """Leave the metrics alone of a run that is over."""
        for name in (_CHECKPOINT, _RUN):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.features, ignore_errors=True)

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the metrics."""
        with (self.folder / METRICS).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that will be made again."""
        entries = [entry for entry in self.metrics() if entry["step"] <= step]
        replace_file(self.folder / METRICS, "".join(json.dumps(entry) + "\n" for entry in entries).encode())

    def metrics(self) -> list[dict[str, Any]]:
        """All lines; a last one that was cut off is left out."""
        file = self.folder / METRICS
        entries = []
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            try:
                entries.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return entries
