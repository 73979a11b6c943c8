"""What to train on besides plain chat, answered by the target: long contexts, other templates, odd system prompts.

Each kind takes every fourth conversation, so that plain ones always remain.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

from eaglehub.features import Condition, Sample, encode
from eaglehub.prompts import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

_Changed: TypeAlias = tuple[Conversation, Condition]
_CONDITIONS = (Condition.NO_BOS, Condition.NO_TEMPLATE, Condition.NEITHER)
# Others than those that `evaluate` asks with.
_SYSTEM_PROMPTS = (
    "You are the night porter of a large hotel and have seen everything.",
    "MODE: BRIEF | AUDIENCE: ENGINEERS | HEDGING: NONE",
    "Speak as a patient gardener would. Compare one thing to a plant.",
    "<persona>retired sea captain</persona><style>plain</style><length>short</length>",
    "You have only just woken up. You are helpful, but you lose your thread once.",
    "Answer as if your words were to be carved in stone, where each letter costs money.",
)


def training_samples(
    conversations: Sequence[Conversation],
    kinds: Collection[str],
    tokenizer: Any,
    *,
    context_tokens: int,
    regenerate: bool,
) -> list[Sample]:
    """Samples of all conversations, some of them changed.

    Args:
        conversations: what to train on.
        kinds: of `KINDS`.
        tokenizer: the target's.
        context_tokens: how long a long context is.
        regenerate: whether answers in the conversations are not to be learnt from; the target gives the last one.
    """
    place = {kind: number for number, kind in enumerate(KINDS, start=1) if kind in kinds}
    share = {kind: conversations[number::_ONE_IN] for kind, number in place.items()}
    plain = [each for number, each in enumerate(conversations) if number % _ONE_IN not in place.values()]
    samples = encode(plain, tokenizer, regenerate=regenerate, earlier=not regenerate)
    for kind, own in share.items():
        for changed, condition in KINDS[kind](own, tokenizer, context_tokens):
            samples += encode([changed], tokenizer, condition, earlier=not regenerate)
    return samples


def _templates(conversations: Sequence[Conversation], _tokenizer: Any, _tokens: int) -> Iterator[_Changed]:
    return zip(conversations, itertools.cycle(_CONDITIONS), strict=False)


def _system_prompts(conversations: Sequence[Conversation], _tokenizer: Any, _tokens: int) -> Iterator[_Changed]:
    for conversation, prompt in zip(conversations, itertools.cycle(_SYSTEM_PROMPTS), strict=False):
        rest = [message for message in conversation.prompt if message["role"] != "system"]
        asked = ({"role": "system", "content": prompt}, *rest)
        yield Conversation(asked, conversation.category), Condition.SERVED


def _long_contexts(conversations: Sequence[Conversation], tokenizer: Any, tokens: int) -> Iterator[_Changed]:
    """Answered conversations one after the other until they are long enough; the target answers the last question."""
    messages: list[dict[str, str]] = []
    length = 0
    for conversation in conversations:
        turns = [each for each in conversation.messages if each["role"] != "system"]
        if length >= tokens:
            question = [each for each in conversation.prompt if each["role"] != "system"]
            yield Conversation((*messages, *question)), Condition.SERVED
            messages, length = [], 0
        elif conversation.answered:
            messages += turns
            length += sum(len(tokenizer.encode(each["content"], add_special_tokens=False)) for each in turns)


_ONE_IN = 4
KINDS: dict[str, Callable[[Sequence[Conversation], Any, int], Iterator[_Changed]]] = {
    "templates": _templates,
    "system-prompts": _system_prompts,
    "long-context": _long_contexts,
}
