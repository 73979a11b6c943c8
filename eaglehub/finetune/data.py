"""What a run learns from and is judged by: conversations, some of them changed, and put before the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UsageProblem
from eaglehub.features import encode, fingerprint
from eaglehub.finetune.augment import training_samples
from eaglehub.prompts import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from eaglehub.features import Extraction, Source
    from eaglehub.finetune.finetune import Prepared
    from eaglehub.finetune.settings import Settings
    from eaglehub.prompts import Conversation

_HELD_OUT_EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """What the user has to train on and to judge by.

    Attributes:
        training: to learn from.
        held_out: to judge by.
        augment: kinds of changed conversations, see `augment.KINDS`.
        context_tokens: length of a long context.
        regenerate: whether the target answers those that come with an answer as well.
    """

    training: Sequence[Conversation]
    held_out: Sequence[Conversation]
    augment: Collection[str]
    context_tokens: int
    regenerate: bool


@dataclass(frozen=True, slots=True)
class Data:
    """What the target is run on, and what is said of it.

    Attributes:
        training, held_out: what to extract.
        facts: numbers and digests of the conversations, as the report has them.
    """

    training: Extraction
    held_out: Extraction
    facts: dict[str, Any]

    @property
    def samples(self) -> int:
        """How many conversations there are."""
        return len(self.training.samples) + len(self.held_out.samples)

    @property
    def nbytes(self) -> int:
        """Upper bound of the states' size."""
        return self.training.nbytes + self.held_out.nbytes


def hold_out(conversations: Sequence[Conversation]) -> tuple[Sequence[Conversation], Sequence[Conversation]]:
    """Those to train on, and every tenth, which is held out.

    Raises:
        UsageProblem: there is but one.
    """
    training = [each for number, each in enumerate(conversations) if number % _HELD_OUT_EVERY]
    if not training:
        raise UsageProblem("one conversation cannot be both trained on and held out", where="--prompts")
    return training, conversations[::_HELD_OUT_EVERY]


def prepare_data(
    prepared: Prepared, source: Source, given: Conversations, *, max_tokens: int, ignore_eos: bool
) -> Data:
    """The conversations as the target is run on them.

    Args:
        prepared: the drafter.
        source: its target.
        given: the conversations.
        max_tokens: of an answer that the target gives.
        ignore_eos: whether answers go on to `max_tokens`.

    Raises:
        UnusableInput: a conversation is empty, or goes beyond the target's vocabulary.
    """
    tokenizer = source.tokenizer()
    extraction = partial(source.extraction, layer_ids=prepared.layer_ids, max_tokens=max_tokens, ignore_eos=ignore_eos)
    samples = training_samples(
        given.training, given.augment, tokenizer, context_tokens=given.context_tokens, regenerate=given.regenerate
    )
    facts = {
        "conversations": len(given.training),
        "digest": digest(given.training),
        "held_out_conversations": len(given.held_out),
        "held_out_digest": digest(given.held_out),
        "augment": list(given.augment),
    }
    return Data(extraction(samples), extraction(encode(given.held_out, tokenizer, regenerate=given.regenerate)), facts)


def describe_run(prepared: Prepared, data: Data, settings: Settings, depth: int) -> dict[str, Any]:
    """Everything that a run's result depends on, for `Work.open`; `depth` is how many draft positions are judged."""
    checkpoint = prepared.conversion.checkpoint
    return {
        "drafter": fingerprint(checkpoint.path_of("config.json").parent),
        "training": data.training.digest,
        "held_out": data.held_out.digest,
        "settings": asdict(settings),
        "num_speculative_tokens": depth,
    }
