"""A Hub and a network that misbehave: one commit or none, never a wrong one, and the next run finishes the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hub import Fault
from tests.publish.conftest import REPO, TARGET
from tests.publish.test_publish import PUBLISHED, commits, files
from tests.reports import validate

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from tests.hub import LoopbackHub
    from tests.publish.conftest import Publish

COMMIT, UPLOAD, ALWAYS = "POST .*/commit/", "PUT /objects/", None


def agrees(hub: LoopbackHub, folder: Path) -> bool:
    """Whether the repository holds the folder, and nothing but."""
    there = files(hub)
    same = all(there[name] == (folder / name).read_bytes() for name in PUBLISHED - {"README.md"})
    return same and set(there) == PUBLISHED | {"eaglehub-acceptance.png"}


MENDED = {
    "commit lost": Fault(COMMIT, lose_answer=True),
    "commit lost twice": Fault(COMMIT, lose_answer=True, times=2),
    "commit 503": Fault(COMMIT, status=503),
    "commit 502 page": Fault(COMMIT, status=502, html=True),
    "commit 429": Fault(COMMIT, status=429, headers={"Retry-After": "1"}),
    "commit cut": Fault(COMMIT, drop_after=10),
    "commit answer cut": Fault(COMMIT, truncate_to=5),
    "upload cut": Fault(UPLOAD, drop_after=1000),
    "upload 500": Fault(UPLOAD, status=500),
    "batch 503": Fault("POST .*/objects/batch", status=503),
    "creation lost": Fault("POST /api/repos/create", lose_answer=True),
    "slow": Fault(COMMIT, delay=5),
    "tag lost": Fault("POST .*/tag/", lose_answer=True),
}
FINAL = {
    "commit 403": Fault(COMMIT, status=403, times=ALWAYS),
    "commit 404": Fault(COMMIT, status=404, times=ALWAYS),
    "commit 409": Fault(COMMIT, status=409, times=ALWAYS),
    "commit 412": Fault(COMMIT, status=412, times=ALWAYS),
    "commit 500 for ever": Fault(COMMIT, status=500, times=ALWAYS),
    "commit page for ever": Fault(COMMIT, status=502, html=True, times=ALWAYS),
    "upload cut for ever": Fault(UPLOAD, drop_after=1000, times=ALWAYS),
    "upload 403": Fault(UPLOAD, status=403, times=ALWAYS),
    "preupload 403": Fault("POST .*/preupload/", status=403, times=ALWAYS),
    "creation 403": Fault("POST /api/repos/create", status=403, times=ALWAYS),
    "whoami 401": Fault("GET /api/whoami", status=401, times=ALWAYS),
    "whoami page": Fault("GET /api/whoami", status=200, html=True, times=ALWAYS),
    "model 503": Fault("GET /api/models", status=503, times=ALWAYS),
    "card 502 page": Fault("POST /api/validate-yaml", status=502, html=True, times=ALWAYS),
}


def some_slow(faults: dict[str, Fault], *fast: str) -> list[ParameterSet]:
    """The faults' names, of which only some are tried whenever anything changes."""
    return [pytest.param(name, marks=() if name in fast else pytest.mark.slow) for name in faults]


def check_secrets(hub: LoopbackHub, said: str, *folders: Path) -> None:
    """The token, and signed addresses, stand nowhere."""
    assert hub.token not in said
    assert "X-Signature" not in said
    assert "Traceback" not in said
    for folder in folders:
        for path in folder.rglob("*"):
            assert not path.is_file() or hub.token.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("name", some_slow(MENDED, "commit lost", "upload cut", "creation lost"))
def test_a_passing_fault_changes_nothing(publish: Publish, hub: LoopbackHub, drafter: Path, name: str) -> None:
    hub.faults.append(MENDED[name])
    MENDED[name].happened = 0

    result = publish("--tag", "v1")

    assert result.exit_code == 0, result.stderr
    assert MENDED[name].happened > 0
    assert commits(hub) == 1
    assert agrees(hub, drafter)
    assert hub.repos[REPO].refs["refs/tags/v1"] == hub.repos[REPO].head().oid
    check_secrets(hub, result.stdout + result.stderr, drafter, hub.home)


@pytest.mark.parametrize("name", some_slow(FINAL, "commit 412", "commit 500 for ever", "upload cut for ever"))
def test_a_lasting_fault_is_one_line_and_the_next_run_finishes(
    publish: Publish, hub: LoopbackHub, drafter: Path, name: str
) -> None:
    FINAL[name].happened = 0
    hub.faults.append(FINAL[name])

    result = publish()

    assert (result.exit_code, result.stdout) == (5, "")
    assert sum(line.startswith("error: ") for line in result.stderr.splitlines()) == 1
    assert commits(hub) == 0
    check_secrets(hub, result.stdout + result.stderr, drafter, hub.home)
    hub.faults.clear()
    assert publish().exit_code == 0
    assert commits(hub) == 1
    assert agrees(hub, drafter)


def test_somebody_elses_change_is_not_overwritten(
    publish: Publish, hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, {"config.json": b"{}"})
    from eaglehub.publish import commit

    upload = commit._upload

    def meanwhile(*args):
        hub.add(REPO, {"config.json": b"theirs"})
        return upload(*args)

    monkeypatch.setattr(commit, "_upload", meanwhile)
    result = publish()
    monkeypatch.undo()

    assert result.exit_code == 5
    assert "somebody else has changed it meanwhile" in result.stderr
    assert files(hub) == {"config.json": b"theirs"}


def test_a_commit_that_was_made_is_found_under_a_later_one(
    publish: Publish, hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.faults.append(Fault(COMMIT, lose_answer=True))
    from eaglehub.publish import commit

    find = commit.find

    def later(*args):
        hub.add(REPO, {"notes.txt": b"theirs"})
        return find(*args)

    monkeypatch.setattr(commit, "find", later)

    report = validate(publish("--json"))

    repo = hub.repos[REPO]
    assert report["commit"] == repo.head().parent
    assert agrees(hub, drafter) is False
    assert repo.files()["notes.txt"].data == b"theirs"


def test_a_pull_request_whose_answer_is_lost_is_opened_once(publish: Publish, hub: LoopbackHub) -> None:
    repo = hub.add(REPO, {"config.json": b"{}"})
    hub.faults.append(Fault(COMMIT, lose_answer=True))

    report = validate(publish("--create-pr", "--json"))

    assert (report["pull_request"], len(repo.pulls)) == ("refs/pr/1", 1)


def test_not_knowing_is_said(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    hub.faults += [Fault(COMMIT, lose_answer=True), Fault("GET .*/commits/", status=503, times=None)]

    result = publish()

    assert result.exit_code == 5
    assert "whether the commit was made is not known, and another run finds out" in result.stderr
    hub.faults.clear()
    assert validate(publish("--json"))["status"] == "unchanged"
    assert commits(hub) == 1


def test_what_arrived_damaged_is_noticed(publish: Publish, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    from eaglehub.publish import publish as room

    send = room.send

    def damaged(*args):
        made = send(*args)
        hub.add(REPO, {"config.json": b"damaged"})
        return made._replace(oid=hub.repos[REPO].head().oid)

    monkeypatch.setattr(room, "send", damaged)

    result = publish()

    assert result.exit_code == 5
    assert "does not hold what was sent: config.json" in result.stderr


def test_a_tag_that_fails_leaves_the_files(publish: Publish, hub: LoopbackHub, drafter: Path) -> None:
    hub.faults.append(Fault("POST .*/tag/", status=403))

    result = publish("--tag", "v1")

    assert result.exit_code == 5
    assert "another run sets the tag" in result.stderr
    assert agrees(hub, drafter)
    assert publish("--tag", "v1").exit_code == 0
    assert (commits(hub), "refs/tags/v1" in hub.repos[REPO].refs) == (1, True)


@pytest.mark.parametrize("repo", ["other/drafter", "readers/drafter"])
def test_a_namespace_of_others(publish: Publish, hub: LoopbackHub, repo: str) -> None:
    result = publish(repo=repo)
    assert result.exit_code == 5
    assert "does not exist, and tester may not make it" in result.stderr
    assert hub.writes == []


def test_nobody_logged_in(publish: Publish, hub: LoopbackHub) -> None:
    hub.log_in(False)
    result = publish()
    assert result.exit_code == 5
    assert "nobody is logged in (run: hf auth login, or set HF_TOKEN)" in result.stderr


def test_a_hub_without_xet(publish: Publish, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    monkeypatch.delenv("HF_HUB_DISABLE_XET")
    result = publish()
    assert result.exit_code == 5
    assert "by Xet failed; nothing was committed" in result.stderr
    assert "HF_HUB_DISABLE_XET=1" in result.stderr
    assert commits(hub) == 0


def test_offline(publish: Publish, hub: LoopbackHub) -> None:
    hub.offline()
    result = publish()
    assert result.exit_code == 5
    assert result.stderr.count("\n") == 1
    assert hub.log == []


def test_a_token_that_the_hub_does_not_know(publish: Publish, hub: LoopbackHub) -> None:
    token = "hf_" + "0" * 34
    hub.log_in(token=token)
    result = publish()
    assert result.exit_code == 5
    assert "the Hub does not know your token" in result.stderr
    assert token not in result.stderr


def test_a_repository_that_was_renamed(publish: Publish, hub: LoopbackHub) -> None:
    hub.add("tester/old", {"config.json": b"{}"})
    hub.rename("tester/old", "tester/new")
    result = publish(repo="tester/old")
    assert result.exit_code == 5
    assert "renamed to tester/new" in result.stderr
    assert hub.writes == []


def test_no_such_target(publish: Publish, hub: LoopbackHub) -> None:
    del hub.repos[TARGET]
    result = publish()
    assert result.exit_code == 1
    assert f"there is no {TARGET} on the Hub" in result.stdout
    assert hub.writes == []


def test_front_matter_that_the_hub_refuses(publish: Publish, hub: LoopbackHub) -> None:
    result = publish("--license", "mine")
    assert result.exit_code == 1
    assert '"license" must be one of' in result.stdout
    assert hub.writes == []


def test_trusted_publishing_needs_no_token_of_a_user(
    publish: Publish, hub: LoopbackHub, drafter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, {"config.json": b"{}"})
    hub.log_in(False)
    hub.publishers["a-job's-id-token"] = REPO
    monkeypatch.setenv("HF_OIDC_ID_TOKEN", "a-job's-id-token")
    monkeypatch.setenv("HF_OIDC_RESOURCE", REPO)

    result = publish("--json")

    assert validate(result)["status"] == "published"
    assert agrees(hub, drafter)
    assert f"the trusted publisher of {REPO} may write" in result.stdout
    assert not any(token in result.stdout + result.stderr for token in (*hub.accounts, *hub.publishers))
    monkeypatch.setenv("HF_OIDC_RESOURCE", "acme/another")
    refused = publish(repo="acme/another")
    assert refused.exit_code == 5
    assert refused.stderr.count("\n") == 1
