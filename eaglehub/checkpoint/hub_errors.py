"""What the Hugging Face client raises, as one line for a person.

Its own texts run over several lines and quote addresses, signed ones among them; none of them is passed on, and the
original is not chained, so that no traceback shows them either.
"""

from __future__ import annotations

import errno
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eaglehub.errors import EaglehubError, HubProblem, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG_IN = "run: hf auth login, or set HF_TOKEN"
_LATER = "try again later"
_STATUS = {
    401: ("there is no such repository, or it is private", f"check the name; for a private one, {_LOG_IN}"),
    402: ("the Hub wants to be paid for this", "see the plan of your account"),
    403: ("the Hub does not allow this with your token", "use one that may, or ask the owner"),
    404: ("there is no such repository, or it is private", f"check the name; for a private one, {_LOG_IN}"),
    409: ("the Hub has it already, in another form", "look at what is there"),
    412: ("somebody else changed the repository in the meantime", "look at the change, then run again"),
    413: ("the Hub refuses a file of this size", "split it"),
    429: ("the Hub got too many requests", _LATER),
}
# The machine's own refusals, which the client lets through.
_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def hub_errors(where: str) -> Iterator[None]:
    """Turn what the client raises inside the block into one line about `where`.

    Raises:
        HubProblem: the Hub or the network refused or failed.
        UsageProblem: the name cannot be a repository's.
        OSError: this machine refused, as by a full disk.
    """
    try:
        yield
    except EaglehubError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _MACHINE and status_of(error) is None:
            raise
        problem = hub_problem(error, where)
        if problem is None:
            raise
        raise problem from None


def status_of(error: BaseException) -> int | None:
    """The HTTP status of an answer that the client raised, None when there was no answer."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def hub_problem(error: BaseException, where: str) -> EaglehubError | None:
    """What an error of the client means; None when it is none of the Hub's or the network's."""
    from huggingface_hub import errors

    match error:
        case errors.GatedRepoError():
            return HubProblem(
                "is gated: its owner must let you in", where=where, fix=f"ask for access on its page, then {_LOG_IN}"
            )
        case errors.RevisionNotFoundError():
            return HubProblem("has no such revision", where=where, fix="give a branch, a tag or a commit of it")
        case errors.RemoteEntryNotFoundError():
            return HubProblem("lacks a file that should be there", where=where, fix=_LATER)
        case errors.LocalTokenNotFoundError():
            return HubProblem("this needs a token of yours", where=where, fix=_LOG_IN)
        case errors.DisabledRepoError():
            return HubProblem("was disabled by its owner or the Hub", where=where)
        case errors.HFValidationError():
            return UsageProblem("is no name of a repository", where=where, fix="it is ORG/NAME")
        case errors.OfflineModeIsEnabled() | errors.CachedRepoTreeNotFoundError():
            return HubProblem(
                "is not, or not wholly, in the cache, and HF_HUB_OFFLINE forbids to fetch it",
                where=where,
                fix="unset HF_HUB_OFFLINE",
            )
    status = status_of(error)
    if status is not None:
        return _answered(error, status, where)
    return _unanswered(error, where)


def _answered(error: Any, status: int, where: str) -> HubProblem:
    """The Hub answered, but not with what was asked for."""
    said = error.response.headers.get("X-Error-Message", "")
    if status == 401 and ("Invalid credentials" in said or error.response.request.url.path.endswith("/whoami-v2")):
        return HubProblem("the Hub does not know your token", where=where, fix=_LOG_IN)
    if status == 429 and (seconds := _seconds_to_wait(error.response.headers)) is not None:
        return HubProblem(_STATUS[status][0], where=where, fix=f"try again in {seconds} seconds")
    if status in _STATUS:
        what, fix = _STATUS[status]
        return HubProblem(
            f"{what} ({status}{f': {said}' if said and status in (403, 409) else ''})", where=where, fix=fix
        )
    what = "the Hub is in trouble" if status >= 500 else "the Hub refused"
    return HubProblem(f"{what}: it answered with status {status}", where=where, fix=_LATER if status >= 500 else said)


def _seconds_to_wait(headers: Any) -> int | None:
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    after = headers.get("Retry-After", "").strip()
    if after.isdecimal():
        return int(after)
    limit = parse_ratelimit_headers(headers)
    return limit.reset_in_seconds if limit and not limit.remaining else None


def _unanswered(error: BaseException, where: str) -> HubProblem | None:
    """There was no answer, or none of a Hub."""
    from huggingface_hub import constants, errors

    # The HTTP library that the client is built on; which one that is depends on its version.
    http = sys.modules[errors.HfHubHTTPError.__mro__[1].__module__.partition(".")[0]]
    host = constants.ENDPOINT.rpartition("/")[2].rpartition("@")[2]
    if isinstance(error, http.TimeoutException):
        return HubProblem(f"{host} did not answer in time", where=where, fix=_LATER)
    if isinstance(error, http.ConnectError | http.ProxyError | http.UnsupportedProtocol | http.InvalidURL):
        return HubProblem(f"{host} cannot be reached", where=where, fix="check the network, a proxy, and HF_ENDPOINT")
    if isinstance(error, http.RequestError):
        return HubProblem(f"the connection to {host} broke off", where=where, fix="try again")
    if isinstance(error, json.JSONDecodeError | errors.FileMetadataError):
        return HubProblem(
            f"what {host} answers is not a Hub's answer", where=where, fix="check a proxy, and HF_ENDPOINT"
        )
    if isinstance(error, errors.OIDCError):
        return HubProblem("the token of this CI job cannot be had", where=where, fix="see HF_OIDC_RESOURCE")
    # The client wraps some of these, such as a failed upload in a RuntimeError.
    if error.__cause__ is not None and isinstance(error, RuntimeError | errors.LocalEntryNotFoundError):
        found = hub_problem(error.__cause__, where)
        return found if isinstance(found, HubProblem) else None
    # What Xet's own library raises; it does not ask whether the Hub has it.
    if isinstance(error, ConnectionError | RuntimeError | errors.XetDownloadError):
        fix = "try again; if this Hub has no Xet, set HF_HUB_DISABLE_XET=1"
        return HubProblem("the transfer by Xet failed", where=where, fix=fix)
    if isinstance(error, OSError):
        return HubProblem("the download is not what the Hub announced", where=where, fix="try again")
    return None
