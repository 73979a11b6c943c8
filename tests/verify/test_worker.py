"""The worker, by file path under an interpreter that knows a stub of vLLM and nothing of eaglehub."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eaglehub.verify import worker

STUB = Path(__file__).with_name("stub")
ENGINE = {"model": "target", "max_model_len": 60}


def ask(word: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": word}


def job(name: str, *conversations: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    return {"name": name, "conversations": list(conversations), "max_tokens": 8} | more


def start(folder: Path, jobs: list[dict[str, Any]], stub: str = "", **engine: Any) -> subprocess.Popen[str]:
    request = {
        "engine": ENGINE | engine,
        "cpu_engine": {"never": "on no CPU"},
        "optional": {"per_request_spec_decode_metrics": "summary", "unknown": 1},
        "speculative": {"method": "eagle3"},
        "draft_tokens": 2,
        "look": False,
        "jobs": jobs,
    }
    (folder / "request.json").write_text(json.dumps(request))
    return subprocess.Popen(
        [sys.executable, str(worker.__file__), str(folder / "request.json"), str(folder / "result.json")],
        env={"PYTHONPATH": str(STUB), "PATH": os.environ["PATH"], "STUB": stub},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    )


def work(folder: Path, *jobs: dict[str, Any], stub: str = "", **engine: Any) -> dict[str, Any]:
    process = start(folder, list(jobs), stub, **engine)
    assert process.wait(60) == 0
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def test_a_job(tmp_path: Path) -> None:
    result = work(tmp_path, job("batch", [ask("abc")], [ask("x")], alternatives=2))
    assert result["error"] is None
    assert result["facts"]["vllm"] == "0.stub"
    assert (result["facts"]["dtype"], result["facts"]["runner"]) == ("float32", "v1")
    batch = result["jobs"]["batch"]
    assert batch["counters"] == {"drafts": 2, "accepted_tokens_per_pos": [2, 0]}
    first, _ = batch["outputs"]
    assert first["prompt_tokens"] == len("u:abc;")
    (sample,) = first["samples"]
    assert sample["text"] == ";cba:u"
    assert sample["alternatives"][0] == [[1, 0.25]]
    assert sample["walk"] == {"accepted": [3, 1], "drafted": 8}


def test_a_prompt_that_is_too_long_is_left_out_or_cut(tmp_path: Path) -> None:
    long, short = [ask("y" * 60)], [ask("x")]
    result = work(tmp_path, job("batch", long, short), job("long", long, clip=True))
    assert [output is None for output in result["jobs"]["batch"]["outputs"]] == [True, False]
    assert result["jobs"]["long"]["outputs"][0]["prompt_tokens"] == 60 - 8 - 2 - 1


def test_without_chunked_prefill_the_budget_is_the_limit(tmp_path: Path) -> None:
    engine = {"enable_chunked_prefill": False, "max_num_batched_tokens": 20}
    result = work(tmp_path, job("long", [ask("y" * 60)], clip=True), **engine)
    assert result["jobs"]["long"]["outputs"][0]["prompt_tokens"] == 20 - 2 - 1


def test_one_by_one_and_with_the_cache_of_the_job_before(tmp_path: Path) -> None:
    three = [[ask(word)] for word in "abc"]
    jobs = [job("single", *three, one_by_one=True), job("repeat", *three, keep_cache=True), job("batch", *three)]
    result = work(tmp_path, *jobs)
    calls = {name: [output["cached_tokens"] for output in done["outputs"]] for name, done in result["jobs"].items()}
    assert calls == {"single": [1, 2, 3], "repeat": [4, 4, 4], "batch": [1, 1, 1]}


def test_stop_strings_come_from_the_middle_of_another_answer(tmp_path: Path) -> None:
    result = work(tmp_path, job("batch", [ask("hello")]), job("stop", [ask("hello")], stop_from="batch"))
    answer = result["jobs"]["batch"]["outputs"][0]["samples"][0]["text"]
    stop = result["jobs"]["stop"]["outputs"][0]["samples"][0]["stop"]
    assert len(stop) == 3
    assert stop in answer


def test_a_template_without_a_system_role_gets_the_words_all_the_same(tmp_path: Path) -> None:
    result = work(tmp_path, job("batch", [ask("be kind", "system"), ask("hi")], max_tokens=30))
    assert result["jobs"]["batch"]["outputs"][0]["samples"][0]["text"][::-1] == "u:be kind\n\nhi;"


def test_speed_is_measured_at_each_level(tmp_path: Path) -> None:
    levels = [{"concurrency": 1, "requests": 3}, {"concurrency": 4, "requests": 5}]
    result = work(tmp_path, job("fast", [ask("abc")], [ask("y" * 60)], [ask("x")], levels=levels))
    assert result["error"] is None
    measured = result["jobs"]["fast"]["levels"]
    assert [(level["concurrency"], len(level["requests"])) for level in measured] == [(1, 3), (4, 5)]
    assert all(request["tokens"] == 8 for level in measured for request in level["requests"])
    assert all(0 < request["first_token_s"] < request["seconds"] for request in measured[0]["requests"])


def test_an_error_is_a_result(tmp_path: Path) -> None:
    result = work(tmp_path, stub="broken")
    assert result["error"] == {"stage": "start", "message": "RuntimeError: out of memory\nsecond line"}


def test_no_vllm(tmp_path: Path) -> None:
    error = work(tmp_path, stub="missing")["error"]
    assert (error["stage"], error["message"]) == ("import", "ModuleNotFoundError: No module named 'vllm'")


def test_the_worker_ends_with_its_parent(tmp_path: Path) -> None:
    process = start(tmp_path, [], "hang")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline() == "up\n"
        process.stdin.close()
        assert process.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize("text", ["", "  \ufffd "])
def test_nothing_to_stop_at(text: str) -> None:
    assert worker._middle(text) is None
