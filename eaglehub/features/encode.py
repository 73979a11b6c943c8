"""From conversations to token ids, under the four conditions of chat template and begin-of-sequence token."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from eaglehub.errors import EnvironmentProblem, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from eaglehub.prompts import Conversation


class Condition(StrEnum):
    """How a conversation is put before the target."""

    SERVED = "template_and_bos"
    NO_BOS = "no_bos"
    NO_TEMPLATE = "no_template"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Sample:
    """Token ids of a prompt and of its answer.

    Attributes:
        prompt: with the turns before.
        answer: None where the target has to give it.
        earlier: answers in the prompt that the target could have given: where each starts and ends.
    """

    prompt: tuple[int, ...]
    answer: tuple[int, ...] | None = None
    earlier: tuple[tuple[int, int], ...] = ()


def load_tokenizer(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The target's tokenizer.

    Raises:
        EnvironmentProblem: transformers is not installed.
        UnusableInput: there is no tokenizer that transformers can read.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise EnvironmentProblem("running a target needs transformers", fix="pip install 'eaglehub[train]'") from error
    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableInput(first_line(error, "has no usable tokenizer"), where=f"target {folder.name}") from error


def encode(
    conversations: Iterable[Conversation],
    tokenizer: Any,
    condition: Condition = Condition.SERVED,
    *,
    regenerate: bool = True,
    earlier: bool = False,
) -> list[Sample]:
    """Each conversation as token ids; a tokenizer without a chat template gets the plain texts.

    Args:
        conversations: what to put before the target.
        tokenizer: the target's.
        condition: with or without chat template and begin-of-sequence token.
        regenerate: leave out the last answers that conversations hold, so that the target gives them.
        earlier: tell of the answers before the last one too.
    """
    writer = _Writer(tokenizer, condition)
    return [
        Sample(
            writer.ids(conversation.prompt, ask=True),
            None if regenerate or not conversation.answered else writer.answer(conversation),
            tuple(writer.earlier(conversation.prompt)) if earlier else (),
        )
        for conversation in conversations
    ]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Puts conversations down as a tokenizer under a condition does."""

    tokenizer: Any
    condition: Condition

    def ids(self, messages: Sequence[dict[str, str]], *, ask: bool) -> tuple[int, ...]:
        """Of messages, and of what comes before an answer if it is asked for."""
        ids = tuple(self.tokenizer.encode(self._text(messages, ask=ask), add_special_tokens=False))
        bos = self.tokenizer.bos_token_id
        if bos is not None and not self._templated and self.condition is not Condition.NEITHER:
            return (bos, *ids)
        if bos is not None and self.condition in (Condition.NO_BOS, Condition.NEITHER) and ids[:1] == (bos,):
            return ids[1:]
        return ids

    def answer(self, conversation: Conversation) -> tuple[int, ...] | None:
        """The last answer; None where a template rewrites the turns before it, so that the target has to answer."""
        prompt = self._text(conversation.prompt, ask=True)
        whole = self._text(conversation.messages, ask=False)
        if not whole.startswith(prompt):
            return None
        return self._to_stop(self.tokenizer.encode(whole[len(prompt) :], add_special_tokens=False)) or None

    def earlier(self, prompt: Sequence[dict[str, str]]) -> Iterator[tuple[int, int]]:
        """Answers in a prompt that stand there as the target would have given them.

        Templates that leave out of earlier answers what they had (a chain of thought) have others.
        """
        ids = self.ids(prompt, ask=True)
        for number, message in enumerate(prompt):
            if message["role"] == "assistant" and number:
                before, through = self.ids(prompt[:number], ask=True), self.ids(prompt[: number + 1], ask=False)
                if through[: len(before)] == before and ids[: len(through)] == through:
                    yield len(before), len(before) + len(self._to_stop(through[len(before) :]))

    @property
    def _templated(self) -> bool:
        served = self.condition in (Condition.SERVED, Condition.NO_BOS)
        return served and bool(getattr(self.tokenizer, "chat_template", None))

    def _text(self, messages: Sequence[dict[str, str]], *, ask: bool) -> str:
        if self._templated:
            return str(self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=ask))
        texts = [message["content"] for message in messages]
        return "\n\n".join(texts) + ("\n\n" if ask else "")

    def _to_stop(self, answer: Sequence[int]) -> tuple[int, ...]:
        """Up to and with the token that ends an answer, if there is one."""
        stop = self.tokenizer.eos_token_id
        return tuple(answer[: answer.index(stop) + 1] if stop in answer else answer)


def first_line(error: Exception, what: str) -> str:
    """What is wrong, with the beginning of what the library says about it."""
    lines = str(error).strip().splitlines()
    return f"{what}: {lines[0][:200]}" if lines else what
