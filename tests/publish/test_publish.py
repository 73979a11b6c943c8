"""What `eaglehub publish` puts on the Hub, and what it refuses to."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import snapshot_download

from tests.cli_runner import run
from tests.publish.conftest import REPO, TARGET
from tests.reports import validate

if TYPE_CHECKING:
    from tests.hub import LoopbackHub
    from tests.publish.conftest import Publish

PUBLISHED = {"README.md", "config.json", "model.safetensors", "eaglehub.json", "eaglehub-verify.json"}


def files(hub: LoopbackHub, revision: str = "main") -> dict[str, bytes]:
    """What a repository holds, without what the Hub itself put there."""
    found = hub.repos[REPO].files(revision)
    return {name: blob.data for name, blob in found.items() if name != ".gitattributes"}


def commits(hub: LoopbackHub) -> int:
    return len(hub.repos[REPO].commits) - 1 if REPO in hub.repos else 0


def failed(report: dict) -> list[str]:
    return [check["id"] for check in report["checks"] if check["verdict"] == "fail"]


def test_one_commit_holds_the_folder(publish: Publish, hub: LoopbackHub, drafter: Path, tmp_path: Path) -> None:
    report = validate(publish("--tag", "v1", "--json"))

    there = files(hub)
    assert set(there) == PUBLISHED | {"eaglehub-acceptance.png"}
    assert {name: there[name] for name in PUBLISHED - {"README.md"}} == {
        name: (drafter / name).read_bytes() for name in PUBLISHED - {"README.md"}
    }
    assert (report["status"], report["commit"], commits(hub)) == ("published", hub.repos[REPO].head().oid, 1)
    assert hub.repos[REPO].refs["refs/tags/v1"] == report["commit"]
    assert report["url"] == f"{hub.endpoint}/{REPO}/commit/{report['commit']}"
    assert there["README.md"].decode() == report["card"]
    blobs = hub.repos[REPO].files()
    assert {item["name"]: item["sha256"] for item in report["files"]} == {name: blobs[name].sha256 for name in there}
    copy = Path(snapshot_download(REPO, local_dir=tmp_path / "copy"))
    assert run("validate", copy).exit_code == 0


def test_a_second_time_changes_nothing(publish: Publish, hub: LoopbackHub) -> None:
    first = validate(publish("--json"))
    hub.clear_log()

    second = validate(publish("--json"))

    assert (second["status"], second["commit"], commits(hub)) == ("unchanged", first["commit"], 1)
    assert hub.writes == []


def test_only_what_changed_is_sent(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    publish()
    (drafter / "LICENSE").write_text("Apache License 2.0")
    hub.clear_log()

    report = validate(publish("--json"))

    assert [item["name"] for item in report["files"] if item["change"] != "unchanged"] == ["LICENSE"]
    assert not any(entry.method == "PUT" for entry in hub.log)
    assert commits(hub) == 2


def test_a_dry_run_shows_all_and_writes_nothing(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    before = sorted(drafter.iterdir())

    report = validate(publish("--dry-run", "--json"))
    shown = publish("--dry-run")

    assert (report["status"], report["commit"], report["parent"]) == ("planned", None, None)
    assert {item["name"] for item in report["files"]} >= PUBLISHED
    assert report["card"] in shown.stdout + "\n"
    assert hub.writes == []
    assert REPO not in hub.repos
    assert sorted(drafter.iterdir()) == before


def test_a_dry_run_does_without_the_hub(publish: Publish, hub: LoopbackHub) -> None:
    hub.log_in(False)
    nobody = validate(publish("--dry-run", "--json"))
    hub.log_in()
    hub.offline()
    offline = validate(publish("--dry-run", "--json"))

    for report in (nobody, offline):
        assert report["status"] == "planned"
        skipped = [check["id"] for check in report["checks"] if check["verdict"] == "skipped"]
        assert skipped == ["hub.access", "card.base-model", "card.metadata"]
    assert hub.log == []
    assert publish().exit_code == 5


def test_weights_of_before_go_with_the_commit(publish: Publish, hub: LoopbackHub) -> None:
    old = {"model-00001-of-00001.safetensors": b"old", "model.safetensors.index.json": b"{}", "modeling.py": b"old"}
    kept = {"notes.txt": b"mine", "assets/demo.safetensors": b"mine"}
    hub.add(REPO, old | kept)

    report = validate(publish("--json"))

    assert report["removed"] == sorted(old)
    assert set(files(hub)) == PUBLISHED | {"eaglehub-acceptance.png"} | set(kept)


def test_a_private_repository(publish: Publish, hub: LoopbackHub) -> None:
    assert publish("--private").exit_code == 0
    assert hub.repos[REPO].private
    hub.repos[REPO].private = False
    refused = publish("--private")
    assert refused.exit_code == 2
    assert "exists and is public" in refused.stderr


def test_a_branch_of_its_own(publish: Publish, hub: LoopbackHub) -> None:
    publish()
    main = hub.repos[REPO].head().oid

    assert publish("--revision", "trial", "--message", "A trial").exit_code == 0
    assert hub.repos[REPO].head().oid == main
    assert files(hub, "trial") == files(hub)


def test_a_pull_request_is_opened_once(publish: Publish, hub: LoopbackHub) -> None:
    repo = hub.add(REPO, {"config.json": b"{}"})
    head = repo.head().oid

    first, second = (validate(publish("--create-pr", "--json")) for _ in range(2))

    assert (first["status"], first["pull_request"]) == ("published", "refs/pr/1")
    assert (second["status"], second["pull_request"]) == ("unchanged", "refs/pr/1")
    assert first["url"] == f"{hub.endpoint}/{REPO}/discussions/1"
    assert (repo.head().oid, len(repo.pulls)) == (head, 1)
    assert set(files(hub, "refs/pr/1")) >= PUBLISHED


def test_a_tag_elsewhere_is_not_moved(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    publish("--tag", "v1")
    (drafter / "LICENSE").write_text("Apache License 2.0")
    publish()

    refused = publish("--tag", "v1")

    assert refused.exit_code == 2
    assert "has a tag v1 at another commit" in refused.stderr


def test_a_report_must_be_there_and_fit(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    config = json.loads((drafter / "config.json").read_text()) | {"transformers_version": "5"}
    (drafter / "config.json").write_text(json.dumps(config))

    report = validate(publish("--json"))
    assert (report["status"], failed(report)) == ("refused", ["gate.verify"])
    assert publish().exit_code == 1
    (drafter / "eaglehub-verify.json").unlink()
    assert "eaglehub-verify.json is missing" in publish().stdout
    assert hub.writes == []

    overlooked = validate(publish("--allow-unverified", "--json"))
    assert overlooked["status"] == "published"
    assert "Published although it did not pass" in overlooked["card"]
    assert "eaglehub-verify.json" not in files(hub)


def test_a_failed_report_is_no_report(publish: Publish, drafter: Path) -> None:
    document = json.loads((drafter / "eaglehub-verify.json").read_text())
    document["verdict"] = document["checks"][1]["verdict"] = "fail"
    (drafter / "eaglehub-verify.json").write_text(json.dumps(document))

    result = publish()

    assert result.exit_code == 1
    assert f"says that these checks failed: {document['checks'][1]['id']}" in result.stdout
    allowed = validate(publish("--allow-unverified", "--json"))
    assert "**fail**" in allowed["card"]


def test_an_invalid_drafter_stays_here(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    config = json.loads((drafter / "config.json").read_text()) | {"auto_map": {"AutoModel": "m.M"}}
    (drafter / "config.json").write_text(json.dumps(config))

    report = validate(publish("--allow-unverified", "--json"))
    assert failed(report) == ["gate.validate"]
    assert hub.writes == []
    ignored = validate(publish("--allow-unverified", "--ignore", "EH901", "--json"))
    assert ignored["status"] == "published"
    assert "EH901" in ignored["card"]


@pytest.mark.parametrize(
    ("name", "text", "check"),
    [
        ("optimizer.bin", "x", "files.pickle"),
        ("modeling.py", "import os", "files.code"),
        ("README.md", "see /home/somebody/drafters", "files.path"),
        ("tokenizer_config.json", '{"names": ["/data/models/llama"]}', "files.path"),
        ("tokenizer_config.json", '{"note": "from C:\\\\Users\\\\somebody\\\\drafters"}', "files.path"),
        ("tokenizer_config.json", '{"note": "D:/models/llama"}', "files.path"),
        ("tokenizer_config.json", '{"note": "\\\\\\\\server\\\\models"}', "files.path"),
        ("LICENSE", "key: hf_" + "x" * 34, "files.secret"),
    ],
)
def test_what_nobody_should_publish(
    publish: Publish, hub: LoopbackHub, drafter: Path, name: str, text: str, check: str
) -> None:
    (drafter / name).write_text(text)

    report = validate(publish("--ignore", "EH9", "--json"))

    assert check in failed(report)
    assert hub.writes == []


def test_a_token_in_the_message(publish: Publish, hub: LoopbackHub) -> None:
    result = publish("--message", f"with {hub.token}")
    assert result.exit_code == 1
    assert hub.token not in result.stdout + result.stderr


def test_what_stays_behind_is_said(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    (drafter / "runs").mkdir()
    (drafter / "train.log").write_text("step 1")

    report = validate(publish("--json"))

    assert {item["name"] for item in report["left_out"]} == {"runs/", "train.log"}
    assert set(files(hub)) == PUBLISHED | {"eaglehub-acceptance.png"}


def test_the_licence_is_named_or_taken_from_the_source_or_asked_for(hub: LoopbackHub, drafter: Path) -> None:
    hub.add(TARGET, {"config.json": b"{}"})
    hub.add("acme/source", {"README.md": b"---\nlicense: mit\n---\n"})

    nobody = run("publish", drafter, REPO, "--dry-run")
    assert (nobody.exit_code, nobody.stdout) == (2, "")
    assert "nothing says under which licence" in nobody.stderr
    unasked = run("publish", drafter, REPO, "--dry-run", "--engine", "sglang")
    assert (unasked.exit_code, unasked.stderr) == (1, "")
    card = validate(run("publish", drafter, REPO, "--dry-run", "--json", "--source-model", "acme/source"))["card"]
    assert card.startswith("---\nlicense: mit\n")
    assert "made from [acme/source]" in card


def test_nobody_publishes_by_accident(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    unasked = run("publish", drafter, REPO, "--license", "mit")
    assert unasked.exit_code == 2
    assert "--yes" in unasked.stderr
    assert hub.writes == []


def test_a_person_is_asked(hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eaglehub.cli.publish._can_ask", lambda: True)

    monkeypatch.setattr("sys.stdin", io.StringIO("mit\nn\n"))
    declined = run("publish", drafter, REPO)
    assert declined.exit_code == 130
    assert "Licence of the drafter" in declined.stderr
    assert "model.safetensors" in declined.stderr
    assert hub.writes == []
    monkeypatch.setattr("sys.stdin", io.StringIO("mit\ny\n"))
    assert run("publish", drafter, REPO).exit_code == 0
    assert files(hub)["README.md"].startswith(b"---\nlicense: mit\n")


def test_what_the_owner_wrote_on_the_hub_survives(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    (drafter / "README.md").write_text("---\nlicense: mit\ndatasets: [acme/data]\n---\n\n# The source\n\nIts text.\n")
    publish()
    card = files(hub)["README.md"].decode()
    assert card.index("## Limits") < card.index("# The source\n\nIts text.")
    hub.add(REPO, {"README.md": (card + "\n## Written on the Hub\n").encode()})

    again = validate(publish("--json"))["card"]

    assert "## Written on the Hub" in again
    assert "Its text." in again
    assert "acme/data" in again
    (drafter / "README.md").write_text("# Written here\n")
    conflict = publish()
    assert (conflict.exit_code, conflict.stdout) == (1, "")
    assert "the card was edited here and on the Hub" in conflict.stderr
    (drafter / "README.md").unlink()
    assert "## Written on the Hub" in validate(publish("--json"))["card"]


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("--create-pr", "--tag", "v1"), "goes with neither"),
        (("--message", " "), "needs a message"),
        (("--base-model", "llama"), "is not ORG/NAME"),
        (("--tag", "a b"), "no name of a branch or tag"),
        (("--create-pr",), "does not exist"),
        (("--ignore", "EH999"), "EH999"),
    ],
)
def test_wrong_options(publish: Publish, hub: LoopbackHub, args: tuple[str, ...], what: str) -> None:
    result = publish(*args)
    assert result.exit_code == 2
    assert what in result.stderr
    assert hub.writes == []


@pytest.mark.parametrize("name", ["model.safetensors", "nothing"])
@pytest.mark.parametrize("command", ["publish", "card"])
def test_no_folder(drafter: Path, command: str, name: str) -> None:
    result = run(command, drafter / name, *(["acme/x"] if command == "publish" else []))
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.count("\n") == 1


def test_no_drafter(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    (drafter / "model.safetensors").unlink()
    result = publish()
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.count("\n") == 1
    assert hub.log == []
