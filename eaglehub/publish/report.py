"""What `eaglehub publish` reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub.report.report import Report
from eaglehub.report.text import escaped, print_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from eaglehub.publish.checks import Check
    from eaglehub.publish.package import LeftOut, PackedFile

_HEADLINES = {
    "published": "published as commit {commit}",
    "unchanged": "nothing to publish: {repo} holds just this",
    "planned": "dry run: nothing was sent",
    "refused": "not published: see the failed checks",
}


@dataclass(frozen=True)
class PublishReport(Report):
    """The report of one publication.

    Attributes:
        repo: where to.
        status: a key of `_HEADLINES`.
        checks: what was looked at first.
        changes: by file: `added`, `changed`, `unchanged` or `removed`.
        parent: the commit that was looked at, empty for a repository that is not there yet.
        commit: the commit that holds the files; empty where nothing was sent.
        url: of the commit, or of the pull request.
        tag: set on the commit, or empty.
        card: its text; shown where nothing is sent.
    """

    kind: ClassVar[str] = "publish"
    repo: str
    status: str
    checks: Sequence[Check]
    files: Sequence[PackedFile]
    left_out: Sequence[LeftOut]
    changes: Mapping[str, str]
    card: str
    parent: str = ""
    commit: str = ""
    url: str = ""
    pull: str = ""
    tag: str = ""

    @property
    def exit_code(self) -> int:
        """1 when a check forbade it."""
        return int(self.status == "refused")

    def data(self) -> dict[str, Any]:
        """See `schemas/report-publish.schema.json`."""
        return {
            "repo": self.repo,
            "status": self.status,
            "checks": [check.to_json() for check in self.checks],
            "files": [
                {
                    "name": file.name,
                    "bytes": file.size,
                    "sha256": file.sha256,
                    "blob_id": file.blob_id,
                    "change": self.changes[file.name],
                }
                for file in self.files
            ],
            "removed": [name for name, change in self.changes.items() if change == "removed"],
            "left_out": [item._asdict() for item in self.left_out],
            "card": self.card,
            "parent": self.parent or None,
            "commit": self.commit or None,
            "url": self.url or None,
            "pull_request": self.pull or None,
            "tag": self.tag or None,
        }

    def render(self, console: Console) -> None:
        """Checks, files, and what came of it."""
        width = max(len(check.id) for check in self.checks)
        for check in self.checks:
            print_verdict(console, check.verdict, f"{check.id:<{width}}  {check.what}")
        for line in self._files():
            console.print(escaped(line), soft_wrap=True)
        if self.status == "planned":
            console.print()
            for line in self.card.splitlines():
                console.print(escaped(line), soft_wrap=True)
            console.print()
        console.print(escaped(_HEADLINES[self.status].format(commit=self.commit, repo=self.repo)), style="bold")
        for label, value in (("url", self.url), ("tag", self.tag)):
            if value:
                console.print(escaped(f"{label} {value}"), soft_wrap=True)

    def _files(self) -> list[str]:
        sizes = {file.name: f"{file.size:>13,} bytes  sha256 {file.sha256}" for file in self.files}
        lines = [f"  {change:<10}{name:<32}{sizes.get(name, '')}".rstrip() for name, change in self.changes.items()]
        return lines + [f"  {'left out':<10}{item.name:<32}{item.reason}" for item in self.left_out]
