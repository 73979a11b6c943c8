"""Runs the command line in a process of its own, for what only a real process shows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any


def run_process(*args: str, env: dict[str, str] | None = None, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """Run `python -m eaglehub ARGS`; streams that `kwargs` does not set are captured."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs
    command = [sys.executable, "-m", "eaglehub", *args]
    return subprocess.run(command, env=os.environ | (env or {}), encoding="utf-8", timeout=60, check=False, **streams)


def run_in_terminal(*args: str, stream: str = "stdout", env: dict[str, str] | None = None) -> str:
    """Run `python -m eaglehub ARGS` with a terminal for one stream and return what the terminal was sent."""
    import pty

    parent, child = pty.openpty()
    try:
        terminal = {"TERM": "xterm-256color", "COLUMNS": "80"}
        run_process(*args, env=terminal | (env or {}), **{stream: child})
        os.set_blocking(parent, False)
        return os.read(parent, 1 << 16).decode()
    except BlockingIOError:
        return ""
    finally:
        os.close(parent)
        os.close(child)
