"""Drafters read where they live: by headers, or through the cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.cli_runner import run
from tests.drafters import build, target_config
from tests.hub.drafters import head, large
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hub import LoopbackHub
    from tests.verify.conftest import Bench

BUDGET = 512 << 10


def test_a_large_drafter_is_validated_by_its_header(hub: LoopbackHub) -> None:
    files = large()
    assert files["model.safetensors"].size > 200e6
    hub.add("acme/large", files)

    result = run("validate", "acme/large", "--json")

    report = validate(result)
    assert (result.exit_code, report["summary"]) == (0, {"error": 0, "warning": 0, "note": 0})
    assert (report["drafters"][0]["name"], report["drafters"][0]["revision"]) == (
        "acme/large",
        head(hub, "acme/large"),
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
    revision = head(hub, "acme/plain")
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


def test_sharded_drafters(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.add("acme/sharded", build("sharded", tmp_path / "sharded").path)
    assert run("validate", "acme/sharded").exit_code == 0
    hub.repos["acme/sharded"].commit("refs/heads/main", {"model-00002-of-00003.safetensors": None}, "lose a shard")
    result = run("validate", "acme/sharded")
    assert result.exit_code == 3
    assert "EH106" in result.stdout


def test_converting_downloads_what_belongs_to_a_drafter(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    result = run("convert", "acme/drafter", tmp_path / "there")
    run("convert", drafter, tmp_path / "here")

    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "there/model.safetensors").read_bytes() == (tmp_path / "here/model.safetensors").read_bytes()
    provenance = json.loads((tmp_path / "there/eaglehub.json").read_text())
    assert provenance["source"]["name"] == "acme/drafter"
    assert provenance["source"]["revision"] == head(hub)
    downloaded = {path.name for path in hub.home.glob("hub/*/snapshots/*/*")}
    assert downloaded == {"config.json", "model.safetensors", "README.md"}


def test_a_target_on_the_hub_gives_its_config_alone(hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    folder = target_config("llama", tmp_path / "target")
    hub.add("acme/target", {"config.json": (folder / "config.json").read_bytes(), "model.safetensors": b"\0" * 100})

    report = validate(run("validate", drafter, "--target", "acme/target", "--json"))

    assert (report["target"], report["target_revision"]) == ("acme/target", head(hub, "acme/target"))
    assert "EH603" in report["drafters"][0]["checked"]
    assert not any("/objects/" in entry.path for entry in hub.log)


def test_differences_on_the_hub(hub: LoopbackHub, drafter: Path) -> None:
    first = head(hub)
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
    assert validate(result)["source"]["revision"] == head(hub, "acme/old")


def test_verifying_leaves_the_cache_as_it_is(hub: LoopbackHub, drafter: Path, bench: Bench) -> None:
    hub.add("acme/target", bench.target)
    options = ("--python", bench.interpreter("good"), "--limit", "6", "--json")

    result = run("verify", "acme/drafter", "--target", "acme/target", *options)

    report = validate(result)
    assert (report["drafter"]["name"], report["drafter"]["revision"]) == ("acme/drafter", head(hub))
    assert (report["target"]["name"], report["target"]["revision"]) == ("acme/target", head(hub, "acme/target"))
    assert "no report is written into it" in result.stderr
    assert not list(hub.home.rglob("eaglehub-verify.json"))
