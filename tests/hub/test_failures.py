"""When the Hub or the network fails: one line, and nothing that could be taken for a sound drafter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.checkpoint.helpers import raw_safetensors
from tests.cli_runner import run
from tests.hub import Blob, Fault
from tests.hub.drafters import head, large
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli_runner import Result
    from tests.hub import LoopbackHub

API, FILES = "GET /api/", "GET /(acme|objects)/"
FAULTS = {
    "a missing one": ("acme/missing", None, "there is no such repository, or it is private (404)"),
    "a private one": ("other/private", None, "there is no such repository, or it is private (404)"),
    "a gated one": ("other/gated", None, "is gated: its owner must let you in"),
    "a revision": ("acme/drafter@v9", None, "has no such revision"),
    "not logged in": ("acme/drafter", Fault(API, status=401), "there is no such repository, or it is private (401)"),
    "forbidden": ("acme/drafter", Fault(API, status=403), "the Hub does not allow this with your token (403"),
    "disabled": (
        "acme/drafter",
        Fault(API, status=403, message="Access to this resource is disabled."),
        "was disabled",
    ),
    "rate limit": ("acme/drafter", Fault(API, status=429, headers={"Retry-After": "7"}), "try again in 7 seconds"),
    "new limit": ("acme/drafter", Fault(API, status=429, headers={"ratelimit": '"api";r=0;t=55'}), "in 55 seconds"),
    "trouble": ("acme/drafter", Fault(API, status=503), "the Hub is in trouble: it answered with status 503"),
    "a proxy's page": ("acme/drafter", Fault(API, status=502, html=True), "it answered with status 502"),
    "a login page": ("acme/drafter", Fault(API, status=200, html=True), "is not a Hub's answer"),
    "no answer": ("acme/drafter", Fault(API, lose_answer=True, times=None), "broke off"),
    "file: trouble": ("acme/drafter", Fault(FILES, status=500), "it answered with status 500"),
    "file: gone": ("acme/drafter", Fault(FILES, status=404, code="EntryNotFound"), "lacks a file"),
    "file: a page": ("acme/drafter", Fault(FILES, status=200, html=True), "another number of bytes"),
    "file: cut short": ("acme/drafter", Fault(FILES, truncate_to=100, times=None), "broke off"),
    "no parts": ("acme/large", Fault("GET /objects/", ignore_range=True), "does not send parts of files"),
    "a part cut short": ("acme/large", Fault("GET /objects/", truncate_to=100), "broke off"),
}


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_when_the_hub_fails(hub: LoopbackHub, drafter: Path, case: tuple) -> None:
    """One line, exit code 5 and nothing on standard output that could be taken for a result."""
    name, fault, expected = case
    if name == "acme/large":
        hub.add("acme/large", large())
    hub.add("other/private", drafter, private=True)
    hub.add("other/gated", drafter, gated=True)
    hub.faults += [replace(fault)] if fault else []

    result = run("--debug", "validate", name)

    assert (result.exit_code, result.stdout) == (5, "")
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert expected in lines[0]
    _assert_tells_nothing(hub, result)


def _assert_tells_nothing(hub: LoopbackHub, result: Result) -> None:
    assert hub.token not in result.stdout + result.stderr
    assert "X-Signature" not in result.stderr


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("GET /objects/", status=500, times=None), "it answered with status 500"),
        (Fault("GET /objects/", status=200, html=True, times=None), "not what the Hub announced"),
        (Fault("HEAD /acme", status=403, times=None), "does not allow this with your token"),
        (Fault("GET /api/models/acme/drafter/tree", status=401, times=None), "(401)"),
    ],
)
def test_when_a_download_fails(hub: LoopbackHub, drafter: Path, tmp_path: Path, fault: Fault, expected: str) -> None:
    hub.faults += [fault]

    result = run("--debug", "convert", "acme/drafter", tmp_path / "out")

    assert (result.exit_code, result.stdout) == (5, "")
    assert expected in result.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    _assert_tells_nothing(hub, result)
    hub.faults.clear()
    assert run("convert", "acme/drafter", tmp_path / "out").exit_code == 0


def test_a_copy_in_the_cache_is_not_taken_for_what_the_hub_has_now(
    hub: LoopbackHub, drafter: Path, tmp_path: Path
) -> None:
    run("convert", "acme/drafter", tmp_path / "first")
    hub.faults += [Fault("GET /api/", status=503, times=None)]
    result = run("convert", "acme/drafter", tmp_path / "second")
    assert result.exit_code == 5
    assert not (tmp_path / "second").exists()


def test_an_unknown_token_is_named_as_the_cause(hub: LoopbackHub, drafter: Path) -> None:
    from tests.hub.hub import new_token

    token = new_token()
    hub.log_in(token=token)
    result = run("--debug", "inspect", "acme/drafter")
    assert result.exit_code == 5
    assert "the Hub does not know your token" in result.stderr
    assert token not in result.stderr


def test_no_network(hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for server in hub._servers:
        server.stop()
    hub._servers.clear()
    result = run("inspect", "acme/drafter")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "cannot be reached" in result.stderr


@pytest.mark.parametrize("endpoint", ["https://name:pa55word@127.0.0.1:1", "127.0.0.1", "https://name:pa55word@[x"])
def test_an_endpoint_that_is_none(
    hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    result = run("--debug", "inspect", "acme/drafter")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "HF_ENDPOINT" in result.stderr.splitlines()[-1]
    assert "pa55word" not in result.stderr


def test_a_slow_hub(hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 0.1)
    hub.faults += [Fault("GET /api/", delay=0.3)]
    result = run("inspect", "acme/drafter")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "did not answer in time" in result.stderr


def test_a_size_that_is_not_the_one_listed(hub: LoopbackHub, drafter: Path) -> None:
    """The offsets in the header are held against the file's real size."""
    header = raw_safetensors({"fc.weight": {"dtype": "F32", "shape": [1 << 20], "data_offsets": [0, 4 << 20]}})
    hub.add("acme/short", {"config.json": b"{}", "model.safetensors": Blob(header, 1 << 20, lfs=True)})
    result = run("validate", "acme/short", "--json")
    assert result.exit_code == 3
    assert "EH103" in {finding["code"] for finding in validate(result)["drafters"][0]["findings"]}


def test_offline_takes_what_is_in_the_cache(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    run("convert", "acme/drafter", tmp_path / "first")
    hub.offline()
    hub.clear_log()

    assert run("inspect", "acme/drafter", "--json").json()["revision"] == head(hub)
    assert run("convert", "acme/drafter", tmp_path / "second").exit_code == 0
    assert (tmp_path / "first/eaglehub.json").read_bytes() == (tmp_path / "second/eaglehub.json").read_bytes()
    failed = run("validate", "acme/other")
    assert (failed.exit_code, failed.stdout) == (5, "")
    assert "acme/other: is not, or not wholly, in the cache, and HF_HUB_OFFLINE forbids to fetch it" in failed.stderr
    assert hub.log == []


def test_offline_does_not_take_half_a_drafter(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    run("convert", drafter, tmp_path / "out", "--target", "acme/drafter")  # only its config goes into the cache
    hub.offline()
    result = run("inspect", "acme/drafter")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "not wholly, in the cache" in result.stderr
