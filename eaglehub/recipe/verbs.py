"""The steps that a recipe can have, as data: what each needs, what it makes, and what it cannot come before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verb:
    """A command of eaglehub as a step.

    Attributes:
        rank: steps that make a drafter come in this order; a step that only looks at one has the rank 0 and may come
            anywhere, except after the last.
        makes: whether it writes a drafter, which the steps after it take.
        shared: options that the head of the recipe gives a value to.
        argument: its second argument where that is the user's to name.
        filled: options that the runner itself gives, so that a recipe cannot.
        beside: its report that belongs beside the drafter, where the card and the publication look for it.
        leaves: whether the command itself puts it there; else the runner has it do so, beside drafters of its own.
    """

    name: str
    rank: int = 0
    makes: bool = False
    shared: tuple[str, ...] = ("target", "prompts")
    argument: str = ""
    filled: tuple[str, ...] = ()
    beside: str = ""
    leaves: bool = False


# Options that name a folder here or a repository on the Hub; that name a file, or for prompts a suite; those that an
# earlier step may have made; and those that name what is kept for later runs, on which a step does not depend.
PLACES = ("target", "compare")
FILES = ("prompts", "held-out", "baseline")
MADE = ("compare", "baseline")
KEPT = ("features", "work", "charts")

_MAKING = ("force", "dry-run", "check")
VERBS = {
    verb.name: verb
    for verb in (
        Verb("convert", 1, makes=True, shared=("target",), filled=_MAKING),
        Verb("upgrade", 2, makes=True, filled=_MAKING),
        Verb("finetune", 3, makes=True, filled=_MAKING),
        Verb("validate", shared=("target",)),
        Verb("evaluate", beside="eaglehub-evaluate.json"),
        Verb("verify", filled=("no-write",), beside="eaglehub-verify.json", leaves=True),
        Verb("publish", 4, shared=(), argument="repo"),
    )
}
