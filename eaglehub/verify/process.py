"""Runs the worker in a process group of its own, and sees that nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.errors import EnvironmentProblem, UsageProblem
from eaglehub.verify.causes import Cause, explain, explain_exit
from eaglehub.verify.worker import STAGE_MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORKER = Path(__file__).with_name("worker.py")
_LOG_LINES, _LINE_LENGTH, _TAIL_BYTES = 12, 240, 64 << 10
_GONE_SECONDS = 5.0
_ENVIRONMENT = {
    # The engine in the worker's own process: a second one would cost an import of torch and gain nothing here.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "PYTHONUNBUFFERED": "1",
}
_RUNNERS = {"auto": {}, "v1": {"VLLM_USE_V2_MODEL_RUNNER": "0"}, "v2": {"VLLM_USE_V2_MODEL_RUNNER": "1"}}
# Frames of tracebacks, with and without the prefix that vLLM's processes give their lines.
_FRAME = re.compile(r"Traceback \(most recent call last\)|^\s{2,}\S|\]\s{3,}\S|^\s*[\^~]+\s*$|File \".*\", line \d+")
_PATH = re.compile(r"(?<![\w.:/])/(?:[^\s/'\":,()\[\]]+/)+(?=[^\s/])")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that gave no result.

    Attributes:
        stage: `import`, `start` or `job NAME`; empty when not even the interpreter started.
        message: one line, vLLM's own where it said something.
        log: the last lines of the log, without tracebacks and local paths.
        seconds: until it failed.
    """

    stage: str
    message: str
    cause: Cause
    log: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class EngineRun:
    """A run that gave its result; see `worker` for the fields. `seconds` is the whole process's."""

    facts: Mapping[str, Any]
    stages: Mapping[str, float]
    inside: Mapping[str, Any] | None
    jobs: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Where vLLM lives, with the runner to ask for and the seconds that one engine may take."""

    path: str
    runner: str
    timeout: float


def find_interpreter(name: str | None) -> str:
    """Path of the interpreter `name`, eaglehub's own when None.

    Raises:
        UsageProblem: there is no such program.
    """
    found = shutil.which(name) if name else sys.executable
    if found is None:
        raise UsageProblem(f"there is no interpreter {name!r}", where="--python")
    return found


def run_engine(request: Mapping[str, Any], interpreter: Interpreter) -> EngineRun | Failure:
    """Run the worker on a request. However this ends, by an exception too, its process group is gone afterwards.

    Raises:
        EnvironmentProblem: the interpreter cannot be executed.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="eaglehub-verify-") as folder:
        files = [Path(folder, name) for name in ("request.json", "result.json", "log")]
        request_file, result_file, log_file = files
        request_file.write_text(json.dumps(request), encoding="utf-8")
        with log_file.open("wb") as log, _interruptible(), _started(interpreter, files, log.fileno()) as process:
            try:
                code: int | None = process.wait(interpreter.timeout)
            except subprocess.TimeoutExpired:
                code = None
        seconds = time.monotonic() - started
        if not result_file.exists():
            return _without_result(code, _tail(log_file), interpreter.timeout, seconds)
        result = json.loads(result_file.read_bytes())
        if result["error"]:
            return _with_error(result["error"], _tail(log_file), seconds)
        return EngineRun(result["facts"], result["seconds"], result["inside"], result["jobs"], seconds)


@contextlib.contextmanager
def _started(interpreter: Interpreter, files: list[Path], log: int) -> Iterator[subprocess.Popen[bytes]]:
    request_file, result_file, _ = files
    try:
        process = subprocess.Popen(
            [interpreter.path, str(_WORKER), str(request_file), str(result_file)],
            env=os.environ | _ENVIRONMENT | _RUNNERS[interpreter.runner],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentProblem(f"cannot be executed: {error.strerror}", where="--python") from error
    try:
        yield process
    finally:
        _end_group(process)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let a polite request to end (a cancelled CI job's) unwind like Ctrl-C, instead of leaving the engine behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End whatever is left of the group, the leader included, and see it gone."""
    deadline = time.monotonic() + _GONE_SECONDS
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.01)
    except (ProcessLookupError, PermissionError):
        process.wait()
    finally:
        if process.stdin:
            process.stdin.close()


def _without_result(code: int | None, log: list[str], timeout: float, seconds: float) -> Failure:
    stage, shown = _stage(log), _shown(log)
    if code is None:
        cause = Cause("it hangs, or the machine is too slow for it", "--timeout")
        return Failure(stage, f"no result after {timeout:g} s", cause, shown, seconds)
    ended = f"was ended by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"
    return Failure(stage, f"the engine's process {ended}", explain_exit(code, log), shown, seconds)


def _with_error(error: Mapping[str, str], log: list[str], seconds: float) -> Failure:
    message = _clean(next(filter(None, map(str.strip, error["message"].splitlines())), ""))
    return Failure(error["stage"], message, explain(error["message"], log), _shown(log), seconds)


def _tail(file: Path) -> list[str]:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        return _ANSI.sub("", stream.read().decode(errors="replace")).splitlines()


def _stage(log: list[str]) -> str:
    return next((line.removeprefix(STAGE_MARK) for line in reversed(log) if line.startswith(STAGE_MARK)), "")


def _shown(log: list[str]) -> tuple[str, ...]:
    lines = [line for line in log if line.strip() and not _FRAME.search(line) and not line.startswith(STAGE_MARK)]
    return tuple(_clean(line) for line in lines[-_LOG_LINES:])


def _clean(line: str) -> str:
    """Without local paths: what a report says is for others to read."""
    return _PATH.sub("", line.strip())[:_LINE_LENGTH]
