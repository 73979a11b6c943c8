"""Doing what a recipe says and is not done yet.

A step is a command in a process of its own, so that a crash ends one drafter's chain and no other, and memory is given
back. Its folder in the work folder, `CHAIN/STEP/`, holds `state.json` (the digest of its inputs and options with which
it last ended, and how), `report.json`, `output.txt` and, where it makes one, the drafter. A step whose digest is the
same and whose drafter is as it was left is done.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub import __version__
from eaglehub.errors import EnvironmentProblem, UsageProblem
from eaglehub.recipe.digests import Digests, json_or_empty, key_of, write_json
from eaglehub.recipe.recipe import filled
from eaglehub.recipe.verbs import KEPT, PLACES, VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from eaglehub.recipe.recipe import Chain, Recipe, Step

_END_SECONDS = 60


class Status(StrEnum):
    """What became of a step."""

    DONE = "done before"
    RAN = "ran"
    FAILED = "failed"
    SKIPPED = "skipped"
    WOULD_RUN = "would run"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A step and what became of it.

    Attributes:
        exit_code: the command's; None where it has not run.
        folder: of its report and output, relative to the recipe's.
        report: the command's own report, where it wrote one.
    """

    step: Step
    status: Status
    exit_code: int | None
    seconds: float
    folder: str
    report: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """How to run a recipe.

    Attributes:
        command: what starts eaglehub; the step's arguments follow. It must end when its standard input does.
        plan: only say what would be done.
        first: the step to begin with, whatever is done already; those before it must be.
        last: the step to end with.
        announce: told what begins.
    """

    command: Sequence[str]
    plan: bool
    first: str | None
    last: str | None
    announce: Callable[[str], None]


def run_recipe(recipe: Recipe, orders: Orders) -> dict[str, list[Outcome]]:
    """Run what is not done; returns each chain's outcomes by its name.

    Raises:
        UsageProblem: a step that is asked for by name is not in the recipe, or cannot be begun with.
        EnvironmentProblem: another run has the work folder, or it cannot be written or read.
    """
    for name in filter(None, (orders.first, orders.last)):
        if not any(step.name == name for chain in recipe.chains for step in chain.steps):
            raise UsageProblem(f"no step is called {name}", where=recipe.name)
    if orders.plan and not recipe.work.is_dir():
        return {chain.name: [_untouched(step) for step in chain.steps] for chain in recipe.chains}
    try:
        recipe.work.mkdir(parents=True, exist_ok=True)
        with _alone_in(recipe.work):
            digests = Digests(recipe.work / ".digests.json")
            runner = _Runner(recipe, orders, digests)
            try:
                return {chain.name: list(runner.chain(chain)) for chain in recipe.chains}
            finally:
                digests.save()
    except OSError as error:
        place = str(error.filename or recipe.work)
        raise EnvironmentProblem(f"cannot work there: {error.strerror}", where=place) from error


def _untouched(step: Step) -> Outcome:
    return Outcome(step, Status.WOULD_RUN, None, 0.0, "", None)


@contextmanager
def _alone_in(work: Path) -> Iterator[None]:
    with (work / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EnvironmentProblem("another run is at work there", where=str(work), fix="wait for it") from error
        yield


class _Runner:
    def __init__(self, recipe: Recipe, orders: Orders, digests: Digests) -> None:
        self.recipe, self.orders, self.digests = recipe, orders, digests
        self.made: dict[str, str | None] = {}  # the last drafter of each chain, None where it failed

    def chain(self, chain: Chain) -> Iterator[Outcome]:
        """Run a chain's steps until one fails."""
        drafter = self.made[chain.after] if chain.after else filled(chain.source)
        names = [step.name for step in chain.steps]
        first = names.index(self.orders.first) if self.orders.first in names else 0
        last = names.index(self.orders.last) if self.orders.last in names else len(names) - 1
        self.made[chain.name] = None
        for number, step in enumerate(chain.steps[: last + 1]):
            if drafter is None:
                yield Outcome(step, Status.SKIPPED, None, 0.0, "", None)
                continue
            outcome = self._step(chain, step, drafter, kept=number < first, again=number >= first > 0)
            yield outcome
            if outcome.status is Status.FAILED:
                drafter = None
            elif step.verb.makes:
                drafter = str(self._output(chain, step))
        self.made[chain.name] = drafter

    def _step(self, chain: Chain, step: Step, drafter: str, *, kept: bool, again: bool) -> Outcome:
        folder = self.recipe.work / chain.name / step.name
        state = json_or_empty(folder / "state.json")
        if self.orders.plan and not self._known(drafter):
            return _untouched(step)
        key = self._key(step, drafter)
        ended = state.get("exit_code") in step.accepted and "seconds" in state
        done = ended and self._is_left(chain, step, state, drafter)
        if kept and not done:
            raise UsageProblem(f"{step.name} of {chain.name} is not done yet", where="--from-step")
        if done and (kept or (state.get("key") == key and not again)):
            return self._outcome(step, folder, Status.DONE, state)
        if self.orders.plan:
            return _untouched(step)
        state = self._execute(chain, step, folder, drafter)
        # As it is afterwards: what was given can change meanwhile, and then it is not done.
        write_json(folder / "state.json", state | {"key": key})
        return self._outcome(step, folder, Status.RAN if state["exit_code"] in step.accepted else Status.FAILED, state)

    def _known(self, drafter: str) -> bool:
        """False for an output that an earlier step has not made yet."""
        path = Path(drafter)
        return not (path.is_relative_to(self.recipe.work) and not path.exists())

    def _output(self, chain: Chain, step: Step) -> Path:
        return self.recipe.work / chain.name / step.name / chain.name

    def _is_left(self, chain: Chain, step: Step, state: dict[str, Any], drafter: str) -> bool:
        """Whether what a step left is still there, as it was."""
        output = self._output(chain, step)
        if step.verb.makes and not (output.is_dir() and state.get("output") == self.digests.drafter(output)):
            return False
        beside = self._beside(step, drafter)
        return beside is None or beside.is_file()

    def _beside(self, step: Step, drafter: str) -> Path | None:
        """Where the report that belongs beside a drafter is; None where there is none, or no folder of ours."""
        folder = self.recipe.folder / drafter
        wanted = step.verb.beside and folder.is_dir() and (step.verb.leaves or folder.is_relative_to(self.recipe.work))
        return folder / step.verb.beside if wanted else None

    def _key(self, step: Step, drafter: str) -> str:
        """What a step depends on: its command, options, drafter, and whatever files its options name."""
        given = self.recipe.folder / drafter
        inputs = [self.digests.drafter(given) if given.exists() else drafter]
        if step.verb.argument:  # what is published stands and falls with the reports beside it
            reports = (given / verb.beside for verb in VERBS.values() if verb.beside)
            inputs += [self.digests.path(report) for report in reports if report.is_file()]
        for name, value in step.options.items():
            if name in KEPT:
                continue
            path = self.recipe.folder / filled(value) if isinstance(value, str) and value else None
            inputs.append(self.digests.path(path) if path and path.exists() else "")
        return key_of([__version__, step.verb.name, dict(step.options), inputs])

    def _execute(self, chain: Chain, step: Step, folder: Path, drafter: str) -> dict[str, Any]:
        self.orders.announce(f"{chain.name}: {step.name}")
        folder.mkdir(parents=True, exist_ok=True)
        for stale in ("state.json", "report.json"):
            (folder / stale).unlink(missing_ok=True)
        output = self._output(chain, step) if step.verb.makes else None
        arguments = [step.verb.name, self._here(drafter)]
        arguments += [str(output), "--force"] if output else []
        arguments += self._options(step)
        arguments += ["--output", f"json={folder / 'report.json'}"]
        beside = self._beside(step, drafter)
        arguments += ["--output", f"json={beside}"] if beside and not step.verb.leaves else []
        started = time.monotonic()
        with (folder / "output.txt").open("wb") as shown:
            exit_code = _run([*self.orders.command, *arguments], self.recipe.folder, shown)
        return {
            "exit_code": exit_code,
            "seconds": time.monotonic() - started,
            "output": self.digests.drafter(output) if output and exit_code in step.accepted else None,
        }

    def _options(self, step: Step) -> Iterator[str]:
        """As on the command line; variables get their values here and nowhere else."""
        for name, value in step.options.items():
            if name == step.verb.argument:
                yield filled(str(value))
            elif isinstance(value, bool):
                yield f"--{name}" if value else f"--no-{name}"
            else:
                for item in value if isinstance(value, list) else [value]:
                    yield from (f"--{name}", self._here(filled(str(item))) if name in PLACES else filled(str(item)))

    def _here(self, place: str) -> str:
        """So written that a folder of this machine does not look like a name on the Hub."""
        return f"./{place}" if not Path(place).is_absolute() and (self.recipe.folder / place).exists() else place

    def _outcome(self, step: Step, folder: Path, status: Status, state: dict[str, Any]) -> Outcome:
        report = json_or_empty(folder / "report.json") or None
        shown = os.path.relpath(folder, self.recipe.folder)
        return Outcome(step, status, state["exit_code"], state["seconds"], shown, report)


def _run(command: Sequence[str], folder: Path, shown: Any) -> int:
    """Run a command in a session of its own, and see to its end whatever ends this process."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=shown, start_new_session=True)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise
    finally:
        if process.stdin:
            process.stdin.close()
