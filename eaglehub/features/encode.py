"""From conversations to token ids, under the four conditions of chat template and begin-of-sequence token."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from eaglehub.errors import EnvironmentProblem, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Iterable
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
    """Token ids of a prompt and of its answer; None where the target has to give the answer."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...] | None = None


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
) -> list[Sample]:
    """Each conversation as token ids; a tokenizer without a chat template gets the plain texts.

    Args:
        conversations: what to put before the target.
        tokenizer: the target's.
        condition: with or without chat template and begin-of-sequence token.
        regenerate: leave out answers that the conversations hold, so that the target gives them.
    """
    return [_sample(conversation, tokenizer, condition, regenerate) for conversation in conversations]


def _sample(conversation: Conversation, tokenizer: Any, condition: Condition, regenerate: bool) -> Sample:
    templated = condition in (Condition.SERVED, Condition.NO_BOS) and bool(getattr(tokenizer, "chat_template", None))
    prompt = _text(conversation.prompt, tokenizer, templated, ask=True)
    ids = list(tokenizer.encode(prompt, add_special_tokens=False))
    bos = tokenizer.bos_token_id
    if bos is not None and not templated and condition is not Condition.NEITHER:
        ids = [bos, *ids]
    if bos is not None and condition in (Condition.NO_BOS, Condition.NEITHER) and ids[:1] == [bos]:
        ids = ids[1:]
    if regenerate or not conversation.answered:
        return Sample(tuple(ids))
    whole = _text(conversation.messages, tokenizer, templated, ask=False)
    if not whole.startswith(prompt):  # some templates rewrite earlier turns; the target then answers
        return Sample(tuple(ids))
    answer = tokenizer.encode(whole[len(prompt) :], add_special_tokens=False)
    end = answer.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in answer else len(answer)
    return Sample(tuple(ids), tuple(answer[:end]) or None)


def _text(messages: Iterable[dict[str, str]], tokenizer: Any, templated: bool, ask: bool) -> str:
    if templated:
        return str(tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=ask))
    texts = [message["content"] for message in messages]
    return "\n\n".join(texts) + ("\n\n" if ask else "")


def first_line(error: Exception, what: str) -> str:
    """What is wrong, with the beginning of what the library says about it."""
    lines = str(error).strip().splitlines()
    return f"{what}: {lines[0][:200]}" if lines else what
