"""`eaglehub serve-command` and `eaglehub verify --base-url`: the line is run, and the server it starts is checked."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from eaglehub.verify import server as asking
from tests.cli_runner import run
from tests.reports import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.vllm
_START_SECONDS = 300
# What a small machine without a GPU needs besides.
_SMALL = ["--dtype", "float32", "--enforce-eager", "--max-model-len", "512"]
_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_USE_V2_MODEL_RUNNER": "0"}


@pytest.fixture(scope="module")
def folder(vllm: None, tiny: Callable[[str], Path]) -> Path:
    return tiny("llama")


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that is started with the line that eaglehub prints."""
    result = run("serve-command", folder / "drafter", "--target", folder / "target")
    assert result.exit_code == 0, result.stderr
    # The program's own name needs a package called vllm, which the CPU build is not.
    program, command, target, *options = shlex.split(result.stdout)
    assert (program, command) == ("vllm", "serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    log = tmp_path_factory.mktemp("server") / "log"
    module = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", target]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*module, *options, *_SMALL, "--host", "127.0.0.1", "--port", port],
            env=os.environ | _ENVIRONMENT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    pytest.fail(log.read_text(errors="replace")[-4000:])


def test_a_server_is_checked(server: str, folder: Path) -> None:
    asked = ["--prompts", folder / "prompts.jsonl", "--limit", "12", "--max-tokens", "16", "--fast", "--json"]
    result = run("verify", "--base-url", server, *asked)
    report = validate(result)
    assert result.exit_code == 0, report["checks"]
    verdicts = {check["id"]: check["verdict"] for check in report["checks"]}
    assert {name for name, verdict in verdicts.items() if verdict != "pass"} == {"speculating.position-rates"}
    assert report["acceptance"]["acceptance_length"] > 2
    assert report["server"]["model"] == "target"
    assert [level["output_tokens"] for level in report["fast"]] == [8 * 16, 8 * 16, 32 * 16]


def test_tokens_that_are_not_the_targets_are_found(server: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(asking._GREEDY, "temperature", 2.0)
    asked = ["--prompts", folder / "prompts.jsonl", "--limit", "6", "--max-tokens", "16", "--json"]
    result = run("verify", "--base-url", server, *asked)
    assert result.exit_code == 1
    (check,) = (check for check in result.json()["checks"] if check["id"] == "lossless.rescored")
    assert check["verdict"] == "fail"
    assert check["evidence"]["differences"][0]["margin"] > 0.5


def test_wrong_answers_are_one_line(server: str) -> None:
    for path, words in (("/nowhere", "is not there"), ("/metrics", "in place of JSON")):
        result = run("verify", "--base-url", server + path)
        assert (result.exit_code, result.stdout) == (5, "")
        assert words in result.stderr
