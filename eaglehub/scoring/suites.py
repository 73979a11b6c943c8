"""What a drafter is evaluated on: plain chat, and what is known to throw drafters off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eaglehub.features.encode import Condition, encode
from eaglehub.prompts import Conversation

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from eaglehub.features import Sample

PLAIN, LONG, ODD = "plain", "long", "odd_system"
_CONDITIONS = {
    "no_bos": Condition.NO_BOS,
    "no_template": Condition.NO_TEMPLATE,
    "neither": Condition.NEITHER,
}
SUITES = (PLAIN, *_CONDITIONS, ODD, LONG)

_ODD_SYSTEM_PROMPTS = (
    "You are a lighthouse. You have seen many ships and you speak slowly.",
    "Reply as a strict customs officer would. Every sentence names a form that has to be filled in.",
    "ASSISTANT MODE = TERSE; UNITS = SI; EMOJI = OFF; LANG = EN-GB",
    "Today you are tired of questions, and polite all the same.",
    "<rules><rule id='1'>Number your sentences.</rule><rule id='2'>Mention the weather.</rule></rules>",
    "Answer for a reader in the year 1890 who has never seen a telephone.",
    "You are one of two assistants. The other one is always right, and never there.",
    "Before each answer, say which of your three imaginary sisters would disagree.",
)


def build_suites(
    names: Collection[str], chat: Sequence[Conversation], long: Sequence[Conversation], tokenizer: Any
) -> dict[str, list[Sample]]:
    """The samples of each suite, the target's answers still to be given.

    A condition that changes nothing, for want of a chat template or a begin-of-sequence token, is left out.

    Args:
        names: of `SUITES`; empty for all.
        chat: what all suites but the long one are made of.
        long: what that one is made of.
        tokenizer: the target's.
    """
    plain = encode(chat, tokenizer)
    suites = {PLAIN: plain}
    for name, condition in _CONDITIONS.items():
        samples = encode(chat, tokenizer, condition)
        if samples not in suites.values():
            suites[name] = samples
    suites[ODD] = encode(_with_odd_systems(chat), tokenizer)
    suites[LONG] = encode(long, tokenizer)
    return {name: samples for name, samples in suites.items() if not names or name in names}


def _with_odd_systems(conversations: Sequence[Conversation]) -> list[Conversation]:
    changed = []
    for number, conversation in enumerate(conversations):
        system = {"role": "system", "content": _ODD_SYSTEM_PROMPTS[number % len(_ODD_SYSTEM_PROMPTS)]}
        rest = [message for message in conversation.prompt if message["role"] != "system"]
        changed.append(Conversation((system, *rest), conversation.category))
    return changed
