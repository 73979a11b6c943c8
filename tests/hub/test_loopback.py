"""The loopback Hub against the unmodified client: it must be a Hub before anything can be tested with it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_safetensors_metadata
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import get_session

from tests.checkpoint.helpers import raw_safetensors
from tests.hub import Blob, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hub import LoopbackHub

CARD = b"---\nlicense: mit\ntags: [eagle3]\n---\n# A drafter\n"
WEIGHTS = raw_safetensors({"norm.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8)


@pytest.fixture
def api(hub: LoopbackHub) -> HfApi:
    return HfApi()


def add(**files: bytes) -> list[CommitOperationAdd]:
    names = {"readme": "README.md", "weights": "model.safetensors", "config": "config.json"}
    return [CommitOperationAdd(names[name], data) for name, data in files.items()]


def commit(api: HfApi, operations: list, **options):
    return api.create_commit("tester/drafter", operations, commit_message="upload", **options)


def test_a_repository_from_its_creation_to_its_download(api: HfApi, hub: LoopbackHub) -> None:
    assert api.whoami()["name"] == "tester"
    api.create_repo("tester/drafter", private=True)
    made = commit(api, add(readme=CARD, weights=WEIGHTS, config=b"{}"))
    api.create_tag("tester/drafter", tag="v1", revision=made.oid)
    api.create_branch("tester/drafter", branch="old", revision="v1")

    info = api.model_info("tester/drafter", files_metadata=True)
    assert (info.sha, info.private, info.card_data["license"]) == (made.oid, True, "mit")
    assert {each.rfilename: each.size for each in info.siblings}["config.json"] == 2
    refs = api.list_repo_refs("tester/drafter")
    assert {branch.name: branch.target_commit for branch in refs.branches} == {"main": made.oid, "old": made.oid}
    assert [tag.name for tag in refs.tags] == ["v1"]
    assert [each.title for each in api.list_repo_commits("tester/drafter")] == ["upload", "initial commit"]
    folder = api.snapshot_download("tester/drafter", revision="v1")
    assert sorted(path.name for path in hub.home.glob("hub/models--tester--drafter/snapshots/*/*")) == [
        *(".gitattributes", "README.md", "config.json", "model.safetensors"),
    ]
    assert (hub.home / "hub" / folder / "model.safetensors").read_bytes() == WEIGHTS


def test_blob_ids_are_gits(api: HfApi, hub: LoopbackHub, tmp_path: Path) -> None:
    api.create_repo("tester/drafter")
    commit(api, add(config=b"{}\n", weights=WEIGHTS))

    files = {each.path: each for each in api.get_paths_info("tester/drafter", ["config.json", "model.safetensors"])}

    (tmp_path / "config.json").write_bytes(b"{}\n")
    hashed = subprocess.run(
        ["git", "hash-object", tmp_path / "config.json"], capture_output=True, text=True, check=True
    )
    assert files["config.json"].blob_id == hashed.stdout.strip()
    assert files["model.safetensors"].lfs.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert files["model.safetensors"].size == len(WEIGHTS)
    assert [entry.path for entry in api.list_repo_tree("tester/drafter")] == [
        *(".gitattributes", "config.json", "model.safetensors"),
    ]


def test_uploads_in_parts(api: HfApi, hub: LoopbackHub) -> None:
    hub.part_bytes = 30
    api.create_repo("tester/drafter")
    commit(api, add(weights=WEIGHTS))

    assert hub.repos["tester/drafter"].files()["model.safetensors"].data == WEIGHTS
    assert sum(entry.path.startswith("/parts/") for entry in hub.log) == -(-len(WEIGHTS) // 30)


def test_unchanged_files_are_told(api: HfApi, hub: LoopbackHub) -> None:
    api.create_repo("tester/drafter")
    first = commit(api, add(config=b"{}", weights=WEIGHTS))
    hub.clear_log()

    assert commit(api, add(config=b"{}", weights=WEIGHTS)).oid == first.oid
    assert not any("/commit/" in entry.path for entry in hub.log)


def test_a_stale_parent_is_refused(api: HfApi, hub: LoopbackHub) -> None:
    api.create_repo("tester/drafter")
    first = commit(api, add(config=b"{}"))
    second = commit(api, add(config=b"{ }"), parent_commit=first.oid)

    with pytest.raises(HfHubHTTPError) as refused:
        commit(api, [CommitOperationDelete("config.json")], parent_commit=first.oid)
    assert refused.value.response.status_code == 412
    assert hub.repos["tester/drafter"].head().oid == second.oid


def test_pull_requests(api: HfApi, hub: LoopbackHub) -> None:
    repo = hub.add("acme/drafter", {"config.json": b"{}"})
    before = repo.head().oid

    made = api.create_commit("acme/drafter", add(readme=CARD), commit_message="card", create_pr=True)

    assert (made.pr_revision, made.pr_num, repo.head().oid) == ("refs/pr/1", 1, before)
    assert "README.md" in repo.files("refs/pr/1")
    assert api.list_repo_refs("acme/drafter", include_pull_requests=True).pull_requests[0].target_commit == made.oid
    assert api.create_pull_request("acme/drafter", title="another").num == 2
    api.merge_pull_request("acme/drafter", 1)
    assert "README.md" in repo.files()


@pytest.mark.parametrize("card", [b"---\nlicense: mine\n---\n", b"---\ntags: eagle3\n---\n", b"---\na: b: c\n---\n"])
def test_cards_are_checked(api: HfApi, hub: LoopbackHub, card: bytes) -> None:
    api.create_repo("tester/drafter")
    with pytest.raises(ValueError, match="Invalid metadata in README"):
        commit(api, add(readme=card))


def test_who_may_what(api: HfApi, hub: LoopbackHub) -> None:
    hub.add("other/private", {"config.json": b"{}"}, private=True)
    hub.add("other/gated", {"config.json": b"{}"}, gated=True)
    with pytest.raises(HfHubHTTPError, match="403"):
        api.create_repo("readers/drafter")
    with pytest.raises(HfHubHTTPError, match="409"):
        [api.create_repo("acme/drafter") for _ in range(2)]
    with pytest.raises(RepositoryNotFoundError):
        api.model_info("other/private")
    with pytest.raises(GatedRepoError):
        api.hf_hub_download("other/gated", "config.json")
    with pytest.raises(RevisionNotFoundError):
        api.model_info("acme/drafter", revision="v9")
    with pytest.raises(RemoteEntryNotFoundError):
        api.hf_hub_download("acme/drafter", "config.json")
    api.auth_check("acme/drafter", write=True)
    hub.log_in(False)
    with pytest.raises(HfHubHTTPError, match="401"):
        api.model_info("other/private")
    assert api.model_info("other/gated").gated == "manual"


def test_renamed_repositories_redirect(api: HfApi, hub: LoopbackHub) -> None:
    hub.add("acme/old", {"config.json": b"{}"})
    hub.rename("acme/old", "acme/new")

    assert api.model_info("acme/old").id == "acme/new"
    assert (hub.home / api.hf_hub_download("acme/old", "config.json")).read_bytes() == b"{}"


def test_ranges_of_a_large_file_cost_what_they_hold(api: HfApi, hub: LoopbackHub) -> None:
    header = raw_safetensors({"fc.weight": {"dtype": "F32", "shape": [50 << 20], "data_offsets": [0, 200 << 20]}})
    hub.add("acme/large", {"model.safetensors": Blob(header, len(header) + (200 << 20), lfs=True)})

    assert get_safetensors_metadata("acme/large").files_metadata["model.safetensors"].tensors["fc.weight"]
    assert hub.sent < 150_000


def test_the_token_never_reaches_the_log_or_the_storage(api: HfApi, hub: LoopbackHub) -> None:
    api.create_repo("tester/drafter")
    commit(api, add(weights=WEIGHTS))
    api.hf_hub_download("tester/drafter", "model.safetensors")

    assert hub.token not in repr(hub.log)
    assert {entry.authorized for entry in hub.log if entry.path.startswith("/objects/")} == {False}


def test_faults(api: HfApi, hub: LoopbackHub) -> None:
    hub.add("acme/drafter", {"config.json": b"0123456789" * 100})
    url = f"{hub.endpoint}/acme/drafter/resolve/main/config.json"
    ranged = {"Range": "bytes=2-5"}
    hub.faults += [
        Fault("GET /acme", status=429, headers={"Retry-After": "7"}),
        Fault("GET /acme", status=502, html=True, skip=1),
        Fault("GET /acme", ignore_range=True, skip=2),
        Fault("GET /acme", truncate_to=10, skip=3),
    ]

    limited = get_session().get(url)
    assert (limited.status_code, limited.headers["Retry-After"]) == (429, "7")
    assert get_session().get(url).text.startswith("<!DOCTYPE html>")
    assert get_session().get(url, headers=ranged).status_code == 200
    with pytest.raises(Exception, match=r"peer closed|Connection reset|incomplete"):
        get_session().get(url)
    part = get_session().get(url, headers=ranged)
    assert (part.status_code, part.content) == (206, b"2345")


def test_a_commit_whose_answer_is_lost_was_made_once(api: HfApi, hub: LoopbackHub) -> None:
    api.create_repo("tester/drafter")
    hub.faults += [Fault("POST .*/commit/", lose_answer=True)]

    with pytest.raises(Exception, match=r"disconnected|reset"):
        commit(api, add(config=b"{}"))
    assert "config.json" in hub.repos["tester/drafter"].files()
    assert len(hub.repos["tester/drafter"].commits) == 2


def test_an_upload_that_breaks_off(api: HfApi, hub: LoopbackHub) -> None:
    api.create_repo("tester/drafter")
    hub.faults += [Fault("PUT /objects/", drop_after=10)]

    commit(api, add(weights=WEIGHTS * 100))

    assert [entry.status for entry in hub.log if entry.method == "PUT"] == [0, 200]
    assert hub.repos["tester/drafter"].files()["model.safetensors"].data == WEIGHTS * 100


def test_another_process_is_pointed_there_by_its_environment(hub: LoopbackHub) -> None:
    code = "import huggingface_hub; print(huggingface_hub.whoami()['name'])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "tester"
