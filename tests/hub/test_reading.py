"""Drafters read where they live: by headers, through the cache, and never mistaken for sound when the Hub fails."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import load_file

from eaglehub.checkpoint.hub import HubName, hub_name
from eaglehub.errors import UsageProblem
from tests.checkpoint.helpers import raw_safetensors
from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.hub import Blob, Fault
from tests.hub.drafters import large
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli_runner import Result
    from tests.hub import LoopbackHub
    from tests.verify.conftest import Bench

BUDGET = 512 << 10
CODE = b"raise SystemExit('nobody should run this')\n"


@pytest.fixture
def drafter(hub: LoopbackHub, tmp_path: Path) -> Path:
    """A sound drafter, also on the Hub: as acme/plain, and as acme/drafter with what should not be downloaded."""
    folder = build("vllm-3.1", tmp_path / "drafter").path
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    rest = {"README.md": b"# A drafter\n", "modeling.py": CODE, "optimizer.pt": b"\0" * 100, "old/config.json": b"{}"}
    hub.add("acme/plain", files)
    hub.add("acme/drafter", files | rest)
    return folder


def commit(hub: LoopbackHub, repo: str = "acme/drafter", revision: str = "main") -> str:
    return hub.repos[repo].head(revision).oid


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("org/repo", HubName("org/repo")),
        ("org/repo@v1.0", HubName("org/repo", "v1.0")),
        ("org/repo@refs/pr/3", HubName("org/repo", "refs/pr/3")),
        ("hf://org/repo", HubName("org/repo")),
        ("hf://models/org/repo", HubName("org/repo")),
        ("hf://org/repo@main/sub/folder", HubName("org/repo", "main", "sub/folder")),
        ("hf://org/repo/sub/", HubName("org/repo", None, "sub")),
        ("hf://org/repo@refs/pr/3/sub", HubName("org/repo", "refs/pr/3", "sub")),
        *((text, None) for text in ("repo", "./org/repo", "/org/repo", "org/repo/", "../repo", "org/a/b", "a/b.json")),
        *((text, None) for text in ("org/config.json", "org/model.safetensors", "~/repo", "org/re po", "")),
    ],
)
def test_names(text: str, name: HubName | None) -> None:
    assert hub_name(text) == name


@pytest.mark.parametrize("text", ["hf://", "hf://org", "hf://datasets/org/repo@v1@v2", "hf://org/re po"])
def test_what_starts_like_a_name_must_be_one(text: str) -> None:
    with pytest.raises(UsageProblem, match="no model repository"):
        hub_name(text)


def test_a_large_drafter_is_validated_by_its_header(hub: LoopbackHub) -> None:
    files = large()
    assert files["model.safetensors"].size > 200e6
    hub.add("acme/large", files)

    result = run("validate", "acme/large", "--json")

    report = validate(result)
    assert (result.exit_code, report["summary"]) == (0, {"error": 0, "warning": 0, "note": 0})
    assert (report["drafters"][0]["name"], report["drafters"][0]["revision"]) == (
        "acme/large",
        commit(hub, "acme/large"),
    )
    skipped = {rule["code"]: rule["reason"] for rule in report["drafters"][0]["skipped"]}
    assert {code for code in skipped if "headers only" in skipped[code]} == {
        "EH407",
        "EH501",
        "EH502",
        "EH503",
    }
    assert hub.sent < BUDGET
    assert "without most of their weights" in run("validate", "acme/large").stdout


@pytest.mark.parametrize("command", [("inspect",), ("validate",), ("convert", "--dry-run"), ("convert", "--check")])
def test_commands_that_read_headers(hub: LoopbackHub, drafter: Path, command: tuple[str, ...]) -> None:
    """The Hub's drafter is told as the same one here would be, and nothing of it is downloaded."""
    name, *options = command
    there = run(name, "acme/plain", "--json", *options)
    here = run(name, drafter, "--json", *options)

    report = validate(there)
    revision = commit(hub, "acme/plain")
    assert revision in json.dumps(report)
    assert f"taking acme/plain from the Hub at {revision}" in there.stderr
    assert (there.exit_code, here.exit_code) == (0, 0)
    if name != "validate":
        assert _without_origin(report) == _without_origin(validate(here))
    assert not list(hub.home.rglob("*.safetensors"))


def _without_origin(report: dict) -> dict:
    source = {key: value for key, value in report.get("source", {}).items() if key not in ("name", "revision")}
    return {key: value for key, value in report.items() if key not in ("name", "revision")} | {"source": source}


def test_faults_of_a_drafter_are_found_there(hub: LoopbackHub, drafter: Path) -> None:
    result = run("validate", "acme/drafter", "--format", "github")
    assert result.exit_code == 1
    assert "file=acme/drafter/modeling.py" in result.stdout
    assert "EH905" in result.stdout

    hub.add("acme/drafter", {"config.json": drafter.joinpath("config.json").read_bytes()[:-3]})
    broken = run("validate", "acme/drafter", "--json")
    assert broken.exit_code == 3
    assert "EH105" in {finding["code"] for finding in validate(broken)["drafters"][0]["findings"]}


def test_all_values_are_read_when_asked_for(hub: LoopbackHub, drafter: Path) -> None:
    from safetensors.numpy import save

    tensors = load_file(drafter / "model.safetensors")
    tensors["norm.weight"][:] = np.nan
    hub.add("acme/drafter", {"model.safetensors": save(tensors)})

    unread = run("validate", "acme/drafter", "--select", "EH5", "--json")
    read = run("validate", "acme/drafter", "--select", "EH5", "--values", "--json")
    hygiene = run("validate", "acme/drafter", "--select", "EH905", "--values", "--json")

    assert (unread.exit_code, read.exit_code) == (0, 1)
    assert [finding["code"] for finding in validate(read)["drafters"][0]["findings"]] == ["EH501"]
    assert [finding["code"] for finding in validate(hygiene)["drafters"][0]["findings"]] == ["EH905"]
    hub.clear_log()
    run("validate", "acme/drafter", "--no-values")
    assert sum("/objects/" in entry.path for entry in hub.log) == 1  # the header


@pytest.mark.parametrize("revision", ["v1", "refs/pr/1", "branch"])
def test_revisions(hub: LoopbackHub, drafter: Path, revision: str) -> None:
    repo = hub.repos["acme/drafter"]
    repo.refs |= dict.fromkeys(("refs/tags/v1", "refs/pr/1", "refs/heads/branch"), repo.head().oid)
    asked = commit(hub)
    hub.add("acme/drafter", {"config.json": b"broken"})

    assert run("inspect", f"acme/drafter@{revision}", "--json").json()["revision"] == asked
    assert run("inspect", f"hf://acme/drafter@{asked[:10]}").exit_code == 0
    assert run("inspect", "acme/drafter").exit_code == 3


def test_subfolders(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    hub.add("acme/many", {f"runs/last/{file.name}": file.read_bytes() for file in drafter.iterdir()})

    assert run("inspect", "hf://acme/many/runs/last", "--json").json()["name"] == "acme/many/runs/last"
    assert run("convert", "hf://acme/many@main/runs/last/", tmp_path / "out").exit_code == 0
    missing = run("inspect", "hf://acme/many/runs/first")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "acme/many: has no folder 'runs/first'" in missing.stderr


def test_sharded_drafters(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.add("acme/sharded", build("sharded", tmp_path / "sharded").path)
    assert run("validate", "acme/sharded").exit_code == 0
    hub.repos["acme/sharded"].commit("refs/heads/main", {"model-00002-of-00003.safetensors": None}, "lose a shard")
    result = run("validate", "acme/sharded")
    assert result.exit_code == 3
    assert "EH106" in result.stdout


def test_a_local_path_wins(hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(drafter.parent)
    here = build("vllm-3", drafter.parent / "acme/drafter").path

    result = run("inspect", "acme/drafter", "--json")
    assert (result.json()["revision"], hub.log) == (None, [])
    assert "acme/drafter is taken from this machine; hf://acme/drafter would be the Hub's" in result.stderr
    assert run("inspect", "hf://acme/drafter", "--json").json()["revision"] == commit(hub)
    assert run("--quiet", "inspect", "hf://acme/drafter").stderr == ""
    assert here.is_dir()


def test_the_client_is_never_imported_for_a_local_path(drafter: Path, tmp_path: Path) -> None:
    target = target_config("llama", tmp_path / "target")
    code = (
        "import sys; from eaglehub.cli.main import main; "
        f"code = main(['validate', {str(drafter)!r}, '--target', {str(target)!r}]); "
        "sys.exit(code or int('huggingface_hub' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_converting_downloads_what_belongs_to_a_drafter(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    result = run("convert", "acme/drafter", tmp_path / "there")
    run("convert", drafter, tmp_path / "here")

    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "there/model.safetensors").read_bytes() == (tmp_path / "here/model.safetensors").read_bytes()
    provenance = json.loads((tmp_path / "there/eaglehub.json").read_text())
    assert provenance["source"]["name"] == "acme/drafter"
    assert provenance["source"]["revision"] == commit(hub)
    downloaded = {path.name for path in hub.home.glob("hub/*/snapshots/*/*")}
    assert downloaded == {"config.json", "model.safetensors", "README.md"}


def test_a_target_on_the_hub_gives_its_config_alone(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    folder = target_config("llama", tmp_path / "target")
    hub.add("acme/target", {"config.json": (folder / "config.json").read_bytes(), "model.safetensors": b"\0" * 100})

    report = validate(run("validate", drafter, "--target", "acme/target", "--json"))

    assert (report["target"], report["target_revision"]) == ("acme/target", commit(hub, "acme/target"))
    assert "EH603" in report["drafters"][0]["checked"]
    assert not any("/objects/" in entry.path for entry in hub.log)


def test_differences_on_the_hub(hub: LoopbackHub, drafter: Path) -> None:
    first = commit(hub)
    weights = bytearray((drafter / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    hub.add("acme/drafter", {"model.safetensors": bytes(weights)})

    same = run("diff", f"acme/drafter@{first[:8]}", drafter, "--json")
    other = run("diff", drafter, "acme/drafter", "--json")
    assert (same.exit_code, validate(same)["same"], same.json()["before_revision"]) == (0, True, first)
    tensors = validate(other)["tensors"]
    assert (other.exit_code, tensors["same"], tensors["not_compared"]) == (
        1,
        0,
        len(load_file(drafter / "model.safetensors")),
    )
    assert not list(hub.home.rglob("*.safetensors"))

    read = validate(run("diff", drafter, "acme/drafter", "--values", "--json"))["tensors"]
    assert (len(read["changed"]), read["not_compared"]) == (1, 0)


def test_a_renamed_repository_says_its_new_name(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    hub.rename("acme/drafter", "acme/eagle")

    result = run("inspect", "acme/drafter", "--json")

    assert (result.exit_code, result.json()["name"]) == (0, "acme/eagle")
    assert "acme/drafter was renamed: it is acme/eagle now" in result.stderr
    assert run("convert", "acme/drafter", tmp_path / "out").exit_code == 0


def test_offline_takes_what_is_in_the_cache(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    run("convert", "acme/drafter", tmp_path / "first")
    hub.offline()
    hub.clear_log()

    assert run("inspect", "acme/drafter", "--json").json()["revision"] == commit(hub)
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


def test_pickles_are_downloaded_to_be_looked_into(hub: LoopbackHub, tmp_path: Path) -> None:
    folder = build("automodel-legacy", tmp_path / "legacy").path
    hub.add("acme/legacy", folder)

    there, here = run("validate", "acme/legacy", "--json"), run("validate", folder, "--json")

    codes = [[finding["code"] for finding in validate(each)["drafters"][0]["findings"]] for each in (there, here)]
    assert codes[0] == codes[1]
    assert "EH902" in codes[0]


def test_upgrades_start_from_the_hub(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.add("acme/old", build("vllm-3", tmp_path / "old").path)
    result = run("upgrade", "acme/old", "--dry-run", "--no-calibrate", "--json")
    assert result.exit_code == 0, result.stderr
    assert validate(result)["source"]["revision"] == commit(hub, "acme/old")


def test_verifying_leaves_the_cache_as_it_is(hub: LoopbackHub, drafter: Path, bench: Bench) -> None:
    hub.add("acme/target", bench.target)
    options = ("--python", bench.interpreter("good"), "--limit", "6", "--json")

    result = run("verify", "acme/drafter", "--target", "acme/target", *options)

    report = validate(result)
    assert (report["drafter"]["name"], report["drafter"]["revision"]) == ("acme/drafter", commit(hub))
    assert (report["target"]["name"], report["target"]["revision"]) == ("acme/target", commit(hub, "acme/target"))
    assert "no report is written into it" in result.stderr
    assert not list(hub.home.rglob("eaglehub-verify.json"))
