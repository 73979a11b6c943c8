"""Conversations from a small grammar: easy to learn, and with choices that no drafter can foresee."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_ANIMALS = ("fox", "owl", "hare", "bear", "goose", "otter", "mouse", "heron")
_ADJECTIVES = ("small", "old", "clever", "sleepy", "brave", "hungry")
_PLACES = ("the mill", "the river", "the orchard", "the harbour", "the hill", "the forest")
_TIMES = ("in the morning", "at noon", "in the evening", "at night")
_FINDS = ("a red apple", "a silver key", "a warm stone", "an empty shell", "a long feather")
_FRIENDS = ("its sister", "the miller", "a quiet stranger", "the postman")


def question(rng: random.Random) -> str:
    """What a user asks."""
    animal, adjective = rng.choice(_ANIMALS), rng.choice(_ADJECTIVES)
    return rng.choice(
        (
            f"Tell me a story about the {adjective} {animal}.",
            f"Where does the {animal} go {rng.choice(_TIMES)}?",
            f"What does the {adjective} {animal} find at {rng.choice(_PLACES)}?",
        )
    )


def conversation(rng: random.Random) -> list[dict[str, str]]:
    """A question and the answer to it."""
    asked = question(rng)
    animal = next(name for name in _ANIMALS if name in asked)
    adjective = next((word for word in _ADJECTIVES if word in asked), "small")
    answer = " ".join(_sentences(animal, adjective, rng))
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]


def _sentences(animal: str, adjective: str, rng: random.Random) -> Iterator[str]:
    place = rng.choice(_PLACES)
    yield f"The {adjective} {animal} lives near {place}."
    for _ in range(rng.randint(2, 4)):
        place, time, find = rng.choice(_PLACES), rng.choice(_TIMES), rng.choice(_FINDS)
        yield f"Every day {time} the {animal} walks from home to {place} and looks for {find}."
        yield f"When the {animal} has found {find}, it shows it to {rng.choice(_FRIENDS)}, and both are happy."
    yield f"That is the end of the story of the {adjective} {animal}."
