"""What can go wrong, one class for each documented exit code.

An error is one line for a person: where, what is wrong, what to do. The CLI prints it and leaves with `exit_code`;
a traceback is shown only with `--debug`.
"""

from __future__ import annotations

from typing import ClassVar


class EaglehubError(Exception):
    """Base of every expected failure.

    Args:
        what: what is wrong, in the user's terms.
        where: the file, option or tensor concerned.
        fix: what to do about it.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(what)

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        line = f"{line} ({self.fix})" if self.fix else line
        return " ".join(line.split())


class UsageProblem(EaglehubError):
    """The request makes no sense as put: contradictory or impossible options."""

    exit_code = 2


class UnusableInput(EaglehubError):
    """A file or folder cannot be read as what it should be.

    Args:
        what, where, fix: as for every error.
        code: the rule of `eaglehub rules` that says more about it.
    """

    exit_code = 3

    def __init__(self, what: str, *, where: str = "", fix: str = "", code: str = "EH101") -> None:
        self.code = code
        super().__init__(what, where=where, fix=fix)


class EnvironmentProblem(EaglehubError):
    """This machine cannot do it: full disk, missing package, no permission to write."""

    exit_code = 4


class HubProblem(EaglehubError):
    """The Hugging Face Hub or the network refused or failed."""

    exit_code = 5
