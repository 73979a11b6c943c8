"""`eaglehub verify --base-url`, against a stub of a vLLM server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli_runner import run
from tests.reports import validate
from tests.verify.stub_server import Stub, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli_runner import Result


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def verify(stub: Stub, *options: str | Path) -> Result:
    with serving(stub):
        return run("verify", "--base-url", f"{stub.url}/v1/", "--limit", "6", "--max-tokens", "8", *options)


def verdicts(result: Result) -> dict[str, str]:
    return {check["id"]: check["verdict"] for check in validate(result)["checks"]}


def summary(result: Result, name: str) -> str:
    return next(str(check["summary"]) for check in result.json()["checks"] if check["id"] == name)


def test_a_server_that_speculates(tmp_path: Path) -> None:
    stub = Stub()
    result = verify(stub, "--json", "--output", f"html={tmp_path / 'page.html'}")
    assert result.exit_code == 0
    assert verdicts(result) == {
        "server.answers": "pass",
        "server.alone": "pass",
        "lossless.rescored": "pass",
        "speculating.drafts": "pass",
        "speculating.acceptance-length": "pass",
        "speculating.position-rates": "skipped",
    }
    report = result.json()
    assert report["acceptance"]["num_drafts"] == 24
    assert report["acceptance"]["acceptance_length"] == pytest.approx(1 + (18 + 6) / 24)
    assert report["acceptance"]["per_position_acceptance_rates"] == pytest.approx([0.75, 0.25, 0])
    assert report["server"] == {"model": "org/target", "vllm": "0.32.0", "max_model_len": 4096}
    assert "127.0.0.1" not in result.stdout + (tmp_path / "page.html").read_text()
    answers = [body for body in stub.bodies if "messages" in body]
    assert all((body["temperature"], body["repetition_penalty"]) == (0, 1) for body in answers)


def test_text() -> None:
    lines = verify(Stub()).stdout.splitlines()
    assert lines[0] == "org/target on a running vLLM 0.32.0"
    assert any(line.startswith("acceptance: length 2.000 (") for line in lines)
    assert lines[-1] == "verdict: pass"


@pytest.mark.parametrize(
    ("stub", "failed", "words"),
    [
        (Stub(speculates=False), "speculating.drafts", "it keeps no counters of drafts"),
        (Stub(drafts=False), "speculating.drafts", "0 drafts"),
        (Stub(wrong=2.0), "lossless.rescored", "6 of 48 tokens are not the target's; first answer 0, token 3, 2 nats"),
    ],
    ids=["no-drafter", "idle", "lossy"],
)
def test_a_server_that_does_not_do_what_it_should(stub: Stub, failed: str, words: str) -> None:
    result = verify(stub, "--json")
    assert result.exit_code == 1
    assert verdicts(result)[failed] == "fail"
    assert words in summary(result, failed)


def test_thresholds() -> None:
    assert verify(Stub(), "--min-acceptance-length", "2.1").exit_code == 1
    assert verify(Stub(), "--min-acceptance-length", "1.9", "--min-position-rate", "1=0.2").exit_code == 0
    result = verify(Stub(), "--min-position-rate", "3=0.1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no draft position 3 (0 to 2)" in result.stderr


def test_a_tie_is_no_difference() -> None:
    result = verify(Stub(wrong=0.25), "--json")
    assert verdicts(result)["lossless.rescored"] == "pass"
    assert summary(result, "lossless.rescored") == "6 sequences, 48 tokens, 6 of them up to a tie"


@pytest.mark.parametrize(
    ("stub", "words"),
    [
        (Stub(keeps=("prompt_token_ids",)), "the server does not give the ids of tokens"),
        (
            Stub(reply={"/v1/completions": (400, "application/json", '{"error": {"message": "no logprobs here"}}')}),
            "the server scores no prompts: no logprobs here",
        ),
    ],
    ids=["no-ids", "no-scores"],
)
def test_what_a_server_cannot_tell_is_skipped_with_the_reason(stub: Stub, words: str) -> None:
    result = verify(stub, "--json")
    assert (result.exit_code, verdicts(result)["lossless.rescored"]) == (0, "skipped")
    assert summary(result, "lossless.rescored") == words


def test_requests_of_others_are_told() -> None:
    result = verify(Stub(strangers=2), "--json")
    assert (result.exit_code, verdicts(result)["server.alone"]) == (0, "warn")
    assert summary(result, "server.alone").startswith("12 other requests ended meanwhile")


def test_a_prompt_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("a short one\nan endless one\n")
    result = verify(Stub(too_long="endless"), "--json", "--prompts", prompts)
    assert (result.exit_code, verdicts(result)["server.answers"]) == (0, "warn")
    assert result.json()["prompts"]["left_out"] == 1
    result = verify(Stub(too_long="one"), "--prompts", prompts)
    assert result.exit_code == 5
    assert "the prompt is too long" in result.stderr


def test_speed(tmp_path: Path) -> None:
    stub = Stub()
    text = tmp_path / "report.txt"
    levels = validate(verify(stub, "--json", "--fast", "--output", f"text={text}"))["fast"]
    assert [(level["concurrency"], level["requests"]) for level in levels] == [(1, 8), (4, 8), (16, 32)]
    assert stub.most <= 16
    for level in levels:
        assert level["target"] is level["speedup"] is None
        assert level["output_tokens"] == 8 * level["requests"]
        assert 0 < level["drafter"]["inter_token_s"]["median"] < level["drafter"]["first_token_s"]["p90"] + 1
    streamed = [body for body in stub.bodies if body.get("stream")]
    assert len({body["cache_salt"] for body in streamed}) == len(streamed)
    assert "concurrency 16: " in text.read_text()


def test_the_key_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    good = verify(Stub(key="sk-secret"), "--json")
    assert good.exit_code == 0
    with serving(Stub(key="another")) as stub:
        bad = run("--debug", "verify", "--base-url", stub.url)
    assert bad.exit_code == 5
    assert "refused with 401 (OPENAI_API_KEY holds the server's key)" in bad.stderr
    assert "sk-secret" not in good.stdout + good.stderr + bad.stdout + bad.stderr


def _html(path: str) -> dict[str, Any]:
    return {"reply": {path: (200, "text/html", "<html>hello</html>")}}


@pytest.mark.parametrize(
    ("stub", "words"),
    [
        (Stub(**_html("/v1/models")), "/v1/models: answered with text/html in place of JSON (is it a vLLM server?)"),
        (Stub(reply={"/v1/models": (404, "text/plain", "")}), "/v1/models: is not there (--base-url is where vLLM"),
        (Stub(reply={"/metrics": (404, "text/plain", "")}), "/metrics: is not there"),
        (
            Stub(reply={"/v1/chat/completions": (500, "application/json", '{"error": {"message": "out of memory"}}')}),
            "/v1/chat/completions: failed with 500: out of memory",
        ),
        (Stub(reply={"/version": (302, "text/html", "")}), "/version: failed with 302"),
    ],
    ids=["html", "no-api", "no-metrics", "broken", "moved"],
)
def test_a_server_that_fails_is_one_line_and_exit_5(stub: Stub, words: str) -> None:
    result = verify(stub)
    assert (result.exit_code, result.stdout) == (5, "")
    assert words in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"error": {"message": "the engine died"}}, "broke off: {'message': 'the engine died'}"),
        ({"choices": []}, "streamed an answer without counting its tokens"),
    ],
)
def test_a_stream_that_fails_is_one_line_and_exit_5(event: dict[str, Any], words: str) -> None:
    result = verify(Stub(event=event), "--fast")
    assert (result.exit_code, result.stdout) == (5, "")
    assert words in result.stderr


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    result = run("verify", "--base-url", url)
    assert (result.exit_code, result.stdout) == (5, "")
    assert f"error: {url}: cannot be reached: " in result.stderr


def test_a_server_that_does_not_answer() -> None:
    result = verify(Stub(hangs=True), "--timeout", "0.2")
    assert result.exit_code == 5
    assert "gave no answer within 0.2 s (--timeout)" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--base-url", "localhost:8000"], "is no address"),
        (["--base-url", "http://me:hush@localhost"], "shown to others"),
        (["--base-url", "http://localhost", "--dtype", "auto"], "--dtype is for an engine that eaglehub starts"),
        (["--base-url", "http://localhost", "drafter"], "DRAFTER is for an engine that eaglehub starts"),
        (["drafter"], "DRAFTER and --target are needed"),
        ([], "DRAFTER and --target are needed"),
    ],
)
def test_wrong_usage(options: list[str], words: str) -> None:
    result = run("verify", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert "hush" not in result.stderr


def test_one_of_several_models() -> None:
    stub = Stub(models=("a", "b"))
    assert "it has a, b" in verify(stub).stderr
    assert verify(stub, "--model", "c").exit_code == 2
    assert verify(stub, "--json", "--model", "b").json()["server"]["model"] == "b"
