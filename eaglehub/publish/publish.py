"""Publishing in two steps: everything that can be known before a byte is sent, then one commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eaglehub.card import read_facts
from eaglehub.errors import HubProblem, UsageProblem
from eaglehub.publish.checks import (
    Check,
    check_base_model,
    check_card,
    check_files,
    check_sound,
    check_verified,
    passed,
    skipped,
)
from eaglehub.publish.commit import Change, Committed, find_pull, send
from eaglehub.publish.confirm import confirm
from eaglehub.publish.package import pack, superseded, without_foreign
from eaglehub.publish.remote import MAIN, Identity, Remote, asking, check_writable, identify, look
from eaglehub.publish.report import PublishReport
from eaglehub.publish.write_card import Choices, write_card
from eaglehub.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from huggingface_hub import HfApi

    from eaglehub.publish.package import PackedFile
    from eaglehub.publish.remote import RemoteFile
    from eaglehub.validate import Settings

# What the Hub puts into a new repository.
_ATTRIBUTES = ".gitattributes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be published, and how.

    Attributes:
        folder: the drafter's.
        repo: `org/name`.
        settings: how `validate` judges it.
        message: of the commit.
        ignored: rules of `validate` to overlook.
        allow_unverified: whether to publish what vLLM was not shown to serve.
        private: whether a new repository is private.
        branch: where the commit goes.
        create_pr: whether to open a pull request against `branch` instead.
        tag: to set on the commit; empty for none.
        choices: what the card says that the folder does not.
        dry_run: whether this is to be looked at only, which can be done without the Hub.
    """

    folder: Path
    repo: str
    settings: Settings
    message: str
    ignored: tuple[str, ...] = ()
    allow_unverified: bool = False
    private: bool = False
    branch: str = MAIN
    create_pr: bool = False
    tag: str = ""
    choices: Choices = field(default_factory=Choices)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that is known before anything is sent.

    Attributes:
        remote: the repository as it was looked at.
        change: what the commit would make of it.
        report: its status is `refused`, or `planned`, or `unchanged`.
    """

    order: Order
    remote: Remote
    change: Change
    report: PublishReport


def prepare(order: Order, api: HfApi, warn: Callable[[str], None]) -> Prepared:
    """Check the folder and the Hub, and work out the commit; nothing is written anywhere.

    `warn` is told what the card has to do without.

    Raises:
        UnusableInput: the folder is no drafter's.
        UsageProblem: impossible options, or no licence.
        HubProblem: the Hub cannot be asked, or does not let this account write there.
        CardConflict: the card was edited here and on the Hub.
    """
    package = pack(order.folder)
    facts = read_facts(order.folder, package.hashes())
    gate = [
        *check_sound(order.folder, order.settings, order.ignored),
        check_verified(facts, allowed=order.allow_unverified),
    ]
    remote, access = _ask_hub(order, api)
    hub = None if access.verdict is Verdict.SKIPPED else api
    overlooked = [check.what for check in gate if check.verdict is Verdict.WARN]
    if any(check.verdict is Verdict.FAIL for check in gate):  # nobody is asked about what will not be published
        order = replace(order, choices=replace(order.choices, ask_license=str))
    written = write_card(order, facts, remote, hub, overlooked, warn)
    package = without_foreign(package, facts)
    files = tuple(sorted((*package.files, *written.files), key=lambda file: file.name))
    names = [path.name for path in order.folder.iterdir() if path.is_file()]
    checks = [
        *gate,
        *check_files(names, files, facts, order.message),
        access,
        check_base_model(written.card.front.get("base_model"), hub),
        check_card(written.card.text(), hub),
    ]
    change, changes = _change(order, remote, files)
    report = PublishReport(
        repo=order.repo,
        status=_status(checks, remote, change),
        checks=checks,
        files=files,
        left_out=package.left_out,
        changes=changes,
        card=written.card.text(),
        parent=change.parent,
    )
    return Prepared(order, remote, change, report)


def carry_out(prepared: Prepared, api: HfApi, announce: Callable[[str], None]) -> PublishReport:
    """Send what was prepared, look whether it arrived, and tag it; `announce` is told what begins.

    Raises:
        HubProblem: it failed; the message says what is so on the Hub.
        UnusableInput: a file changed since it was checked.
    """
    order, report = prepared.order, prepared.report
    if report.status == "unchanged":
        made = Committed(prepared.remote.head)
    else:
        prepared = _make_room(prepared, api)
        known = find_pull(api, prepared.change) if order.create_pr else None
        announce(f"uploading to {order.repo}")
        made = known or send(api, prepared.change, prepared.remote)
        report = replace(report, status="unchanged" if known else "published")
        announce("looking at what the Hub holds")
        confirm(api, prepared.change, made.oid, order.folder)
    if order.tag and prepared.remote.tags.get(order.tag) != made.oid:
        _tag(order, api, made.oid)
    place = f"discussions/{made.pull.rpartition('/')[2]}" if made.pull else f"commit/{made.oid}"
    url = f"{api.endpoint}/{order.repo}/{place}"
    return replace(report, commit=made.oid, url=url, pull=made.pull, tag=order.tag)


def _ask_hub(order: Order, api: HfApi) -> tuple[Remote, Check]:
    """The repository, and whether this account may write there; a dry run does without, and says so."""
    try:
        who = identify(api)
        remote = look(api, order.repo, order.branch)
    except HubProblem as problem:
        if not order.dry_run:
            raise
        return Remote(), skipped("hub.access", f"the Hub could not be asked: {problem}")
    _check_options(order, remote)
    return remote, _check_access(order, api, remote, who)


def _check_options(order: Order, remote: Remote) -> None:
    if order.create_pr and not remote.exists:
        raise UsageProblem(f"{order.repo} does not exist", where="--create-pr", fix="publish without it")
    if order.private and remote.private is False:
        raise UsageProblem(f"{order.repo} exists and is public", where="--private", fix="change it in its settings")
    tagged = remote.tags.get(order.tag)
    if tagged and tagged != remote.head:
        what = f"{order.repo} has a tag {order.tag} at another commit ({tagged[:12]})"
        raise UsageProblem(what, where="--tag", fix="choose another, or delete it there")


def _check_access(order: Order, api: HfApi, remote: Remote, who: Identity) -> Check:
    if order.create_pr:
        return passed("hub.access", f"{who.name} may open a pull request")
    check_writable(api, order.repo, remote, who)
    place = "is there" if remote.exists else f"will be made, {'private' if order.private else 'public'}"
    return passed("hub.access", f"{who.name} may write; {order.repo} {place}")


def _change(order: Order, remote: Remote, files: Sequence[PackedFile]) -> tuple[Change, dict[str, str]]:
    """The commit, and what it means for each file."""
    changes = {file.name: _fate(file, remote.files) for file in files}
    removed = superseded(remote.files, files)
    change = Change(
        repo=order.repo,
        parent=remote.head or remote.start,
        branch=order.branch,
        files=files,
        sent=[file for file in files if changes[file.name] != "unchanged"],
        removed=removed,
        message=order.message,
        create_pr=order.create_pr,
    )
    return change, changes | dict.fromkeys(removed, "removed")


def _fate(file: PackedFile, there: Mapping[str, RemoteFile]) -> str:
    if file.name not in there:
        return "added"
    return "unchanged" if there[file.name].holds(file) else "changed"


def _status(checks: Sequence[Check], remote: Remote, change: Change) -> str:
    if any(check.verdict is Verdict.FAIL for check in checks):
        return "refused"
    return "unchanged" if remote.head and not change.sent and not change.removed else "planned"


def _make_room(prepared: Prepared, api: HfApi) -> Prepared:
    """Make the repository and the branch where they are missing."""
    order, remote = prepared.order, prepared.remote
    if not remote.exists:
        remote = _ensure(
            order,
            api,
            lambda: api.create_repo(order.repo, private=order.private),
            lambda now: now.exists and set(now.files) <= {_ATTRIBUTES},
            "nothing was committed",
        )
    if not remote.head:
        remote = _ensure(
            order,
            api,
            lambda: api.create_branch(order.repo, branch=order.branch, revision=remote.start),
            lambda now: now.head == remote.start,
            "nothing was committed",
        )
    return replace(prepared, remote=remote, change=replace(prepared.change, parent=remote.head))


def _tag(order: Order, api: HfApi, commit: str) -> None:
    _ensure(
        order,
        api,
        lambda: api.create_tag(order.repo, tag=order.tag, revision=commit),
        lambda now: now.tags.get(order.tag) == commit,
        f"the files are published as {commit}, and another run sets the tag",
    )


def _ensure(
    order: Order, api: HfApi, act: Callable[[], object], done: Callable[[Remote], bool], otherwise: str
) -> Remote:
    """Do something once; a failure counts only if the Hub, asked again, does not have it."""
    try:
        with asking(order.repo, otherwise):
            act()
    except HubProblem:
        if not done(remote := look(api, order.repo, order.branch)):
            raise
        return remote
    return look(api, order.repo, order.branch)
