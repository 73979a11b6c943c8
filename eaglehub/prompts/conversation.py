"""A conversation, whatever file it came from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages with `role` (system, user, assistant or tool) and `content`; at least one is a user's.

    Attributes:
        category: as the file says, else empty.
    """

    messages: tuple[dict[str, str], ...]
    category: str = ""

    @property
    def prompt(self) -> tuple[dict[str, str], ...]:
        """What the target is asked: all up to the first user turn that nobody answered, or else the last one."""
        turns = [number for number, message in enumerate(self.messages) if message["role"] == "user"]
        answered = [message["role"] == "assistant" for message in self.messages[1:]] + [False]
        end = next((number for number in turns if not answered[number]), turns[-1])
        return self.messages[: end + 1]

    @property
    def answered(self) -> bool:
        """Whether every user turn has an answer; if not, the target has to give it."""
        return self.messages[-1]["role"] == "assistant" and len(self.prompt) == len(self.messages) - 1


def digest(conversations: Iterable[Conversation]) -> str:
    """SHA-256 over the messages, the same for the same conversations in whatever file format."""
    hashed = hashlib.sha256()
    for conversation in conversations:
        hashed.update(json.dumps(conversation.messages, ensure_ascii=True, sort_keys=True).encode() + b"\n")
    return hashed.hexdigest()
