"""What must hold before a byte is sent: the folder's own checks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eaglehub.card import VERIFICATION_FILE
from eaglehub.checkpoint.hub_errors import hub_errors
from eaglehub.checkpoint.layout import PICKLE_SUFFIXES
from eaglehub.publish.package import texts
from eaglehub.report.findings import Severity
from eaglehub.report.verdict import Verdict
from eaglehub.validate import LOCAL_PATH, find_secrets, judge, matching

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from huggingface_hub import HfApi

    from eaglehub.card import Facts
    from eaglehub.publish.package import PackedFile
    from eaglehub.validate import Settings

# The Hub takes no larger file.
_LARGEST_BYTES = 50_000_000_000
# In running text, only what names somebody's folders; paths as such are common there.
_HOME = re.compile(r"(?:/home/|/Users/|/root/|[A-Za-z]:[\\/]Users[\\/])[\w.-]+")
# Files that hold pieces of text that a tokenizer knows.
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json")

_NOT_ASKED = "the Hub was not asked"


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was looked at before publishing.

    Attributes:
        id: `family.name`.
        verdict: `warn` for what failed and was overlooked on request.
        what: what was found, one line.
    """

    id: str
    verdict: Verdict
    what: str

    def to_json(self) -> dict[str, str]:
        """As the report has it."""
        return {"id": self.id, "verdict": str(self.verdict), "what": self.what}


def passed(check: str, what: str) -> Check:
    """A check that passed."""
    return Check(check, Verdict.PASS, what)


def failed(check: str, what: str) -> Check:
    """A check that forbids publishing."""
    return Check(check, Verdict.FAIL, what)


def skipped(check: str, why: str) -> Check:
    """A check that could not be made."""
    return Check(check, Verdict.SKIPPED, why)


def check_sound(folder: Path, settings: Settings, ignored: Sequence[str]) -> Iterator[Check]:
    """Whether `validate` finds errors; those of the rules `ignored` are overlooked.

    Raises:
        UsageProblem: no rule has such a code.
    """
    overlooked = matching(ignored, "--ignore")
    errors = [finding for finding in judge(folder, settings).findings if finding.severity is Severity.ERROR]
    for error in errors:
        verdict = Verdict.WARN if error.code in overlooked else Verdict.FAIL
        where = f"{error.where}: " if error.where else ""
        yield Check("gate.validate", verdict, f"{error.code} {where}{error.message}")
    if not errors:
        yield passed("gate.validate", f"no errors for {settings.engine.name if settings.engine else 'no engine'}")


def check_verified(facts: Facts, *, allowed: bool) -> Check:
    """Whether vLLM ran these very bytes and nothing failed; `allowed` overlooks that."""
    evidence = facts.verification
    problem = evidence.problem
    if evidence.report and evidence.report["verdict"] != "pass":
        failures = [check["id"] for check in evidence.report["checks"] if check["verdict"] == "fail"]
        problem = f"says that these checks failed: {', '.join(failures)}"
    elif evidence.report and evidence.report["acceptance"] is None:
        problem = "has no measured acceptance: too few checks were asked for"
    if not problem:
        return passed("gate.verify", f"{VERIFICATION_FILE} is of these bytes, and nothing failed")
    fix = "" if allowed else "; run eaglehub verify, or tell with --allow-unverified"
    return Check("gate.verify", Verdict.WARN if allowed else Verdict.FAIL, f"{VERIFICATION_FILE} {problem}{fix}")


def check_files(names: Iterable[str], files: Sequence[PackedFile], facts: Facts, message: str) -> Iterator[Check]:
    """What must not be published: pickles, code, secrets, paths of this machine, files that are too large.

    Args:
        names: of everything in the folder, published or not.
        files: what is published.
        facts: of the drafter.
        message: the commit's.
    """
    metadata = json.dumps(dict(facts.checkpoint.metadata))
    written = [*texts(files), ("the weights' metadata", metadata), ("--message", message)]
    faults = [*_forbidden(names), *_oversized(files), *_leaks(written)]
    yield from faults or [passed("files", "no pickle, no code, no secret, no local path")]


def _forbidden(names: Iterable[str]) -> Iterator[Check]:
    for name in names:
        if name.endswith(PICKLE_SUFFIXES):
            yield failed("files.pickle", f"{name} is a pickle, which can run code: remove it")
        elif name.endswith(".py"):
            yield failed("files.code", f"{name} is code, which a drafter needs none of: remove it")


def _oversized(files: Sequence[PackedFile]) -> Iterator[Check]:
    for file in files:
        if file.size > _LARGEST_BYTES:
            yield failed("files.size", f"{file.name} is larger than the Hub takes: write smaller shards")


def _leaks(written: Iterable[tuple[str, str]]) -> Iterator[Check]:
    for name, text in written:
        for line, what in find_secrets(text):
            yield failed("files.secret", f"{name}: line {line} holds what looks like {what}: remove and revoke it")
        if path := _local_path(name, text):
            yield failed("files.path", f"{name} holds a path of this machine: {path}")


def check_base_model(base_model: object, api: HfApi | None) -> Check:
    """Whether the target that the card names can be found; `api` is None where the Hub cannot be asked.

    Raises:
        HubProblem: the Hub cannot be asked.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    names = base_model if isinstance(base_model, list) else [base_model] if base_model else []
    if not names:
        return skipped("card.base-model", "the card names no target: --base-model does")
    if api is None:
        return skipped("card.base-model", _NOT_ASKED)
    for name in map(str, names):
        with hub_errors(name):
            try:
                api.model_info(name)
            except RepositoryNotFoundError:
                return failed("card.base-model", f"there is no {name} on the Hub: name the target with --base-model")
    return passed("card.base-model", f"{', '.join(map(str, names))} can be found")


def check_card(text: str, api: HfApi | None) -> Check:
    """Whether the Hub takes the front matter; `api` is None where it cannot be asked.

    Raises:
        HubProblem: the Hub cannot be asked.
    """
    from huggingface_hub import RepoCard

    if api is None:
        return skipped("card.metadata", _NOT_ASKED)
    with hub_errors(api.endpoint):
        try:
            RepoCard(text).validate(repo_type="model")
        except json.JSONDecodeError:
            raise
        except ValueError as error:
            return failed("card.metadata", f"the Hub does not take it: {_said(str(error))}")
    return passed("card.metadata", "the Hub takes it")


def _said(answer: str) -> str:
    """The messages of the Hub's answer, which is JSON or text."""
    try:
        return "; ".join(str(error["message"]) for error in json.loads(answer)["errors"])
    except (ValueError, KeyError, TypeError):
        return " ".join(answer.split())[:200]


def _local_path(name: str, text: str) -> str:
    if name in _VOCABULARIES:
        return ""
    for value in (text, *_strings(text)):
        if found := _HOME.search(value):
            return found[0]
    return next((value for value in _strings(text) if LOCAL_PATH.fullmatch(value)), "")


def _strings(text: str) -> Iterator[str]:
    """Every string in a JSON document."""
    try:
        pending: list[Any] = [json.loads(text)]
    except json.JSONDecodeError:
        return
    while pending:
        match pending.pop():
            case dict() as value:
                pending.extend(value.values())
            case list() as value:
                pending.extend(value)
            case str() as value:
                yield value
