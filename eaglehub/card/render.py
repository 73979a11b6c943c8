"""From facts to the card: what each part says, and the template that says it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from eaglehub.card import tables
from eaglehub.card.charts import ACCEPTANCE, CONDITIONS, CONTEXTS, SUITES
from eaglehub.card.document import CARD, TAGS, Card, parse_card, update
from eaglehub.card.evidence import VERIFICATION_FILE
from eaglehub.card.tables import Table, code, linked, plain
from eaglehub.convert import PROVENANCE_FILE
from eaglehub.engines import load_engine
from eaglehub.errors import UnusableInput
from eaglehub.resources import resource
from eaglehub.serving import Service, serve_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from eaglehub.card.facts import Facts

_TEMPLATE = "model_card.md.j2"
_BLANKS = re.compile(r"\n{3,}")
# Which library of the Hub's list a layout belongs to.
_LIBRARIES = {"speculators": "speculators"}
_TITLES = {
    ACCEPTANCE: "Acceptance by draft position",
    SUITES: "Acceptance length by kind of prompt",
    CONTEXTS: "Acceptance length by context length",
    CONDITIONS: "Acceptance length by template and system prompt",
}


class Serving(NamedTuple):
    """An engine's command line, or why it has none and which layout has one."""

    title: str
    line: str
    layout: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the folder does not say.

    Attributes:
        name: the card's title; the repository's name where it has one.
        base_model: the target's repository.
        source_model: the repository it was made from.
        license: its id on the Hub; empty leaves out what is not known.
        overlooked: checks that failed and were overlooked on request.
    """

    name: str
    base_model: str = ""
    source_model: str = ""
    license: str = ""
    overlooked: Sequence[str] = ()


def render(facts: Facts, wishes: Wishes, charts: Iterable[str] = (), old: Card | None = None) -> Card:
    """The card of a drafter: fresh blocks, with everything that the owner wrote in the old one.

    Args:
        facts: what is known of the drafter.
        wishes: what is not in its folder.
        charts: files of `card.charts` that stand beside it.
        old: the card to renew.

    Raises:
        UnusableInput: the old card names the target in a way that is none.
    """
    front = _front_matter(facts, wishes, old.front if old else {})
    text = _environment().get_template(_TEMPLATE).render(_values(facts, wishes, front, charts))
    fresh = parse_card(_BLANKS.sub("\n\n", text), _TEMPLATE)
    return update(old, Card(front, fresh.segments))


@cache
def _environment() -> Any:
    """Jinja's, for text that is no HTML: the filters see to what comes from files."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - Markdown
        loader=FileSystemLoader(resource("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"plain": plain, "code": code, "linked": linked}
    return environment


def _front_matter(facts: Facts, wishes: Wishes, own: Mapping[str, Any]) -> dict[str, Any]:
    """In the order in which people look for it; what the owner set stays, but for the target and the tags.

    A value that is None takes the owner's key away: a licence's name and link go with the licence.
    """
    tags = [tag for tag in TAGS if tag != "eagle3.1" or facts.drafter.generation == "3.1"]
    license_id = wishes.license or own.get("license")
    same = license_id == own.get("license")
    return {
        "license": license_id,
        "license_name": own.get("license_name") if same else None,
        "license_link": own.get("license_link") if same else None,
        "library_name": own.get("library_name") or _LIBRARIES.get(facts.layout.id, "vllm"),
        "pipeline_tag": own.get("pipeline_tag") or "text-generation",
        "base_model": wishes.base_model or own.get("base_model"),
        "tags": tags,
    }


def _values(facts: Facts, wishes: Wishes, front: Mapping[str, Any], charts: Iterable[str]) -> dict[str, Any]:
    target = _first_name(front["base_model"])
    return {
        "title": wishes.name.rpartition("/")[2],
        "drafter": facts.drafter,
        "base_model": target,
        "source_model": wishes.source_model or facts.source,
        "overlooked": wishes.overlooked,
        "servings": list(_commands(facts, wishes, target)),
        "acceptance": [*filter(None, [tables.served(facts), *tables.changed(facts), tables.suites(facts)])],
        "robust": tables.robust(facts),
        "speed": tables.speed(facts),
        "charts": {file: _TITLES[file] for file in charts},
        "verification": facts.verification.report,
        "verification_file": VERIFICATION_FILE,
        "checks": tables.checks(facts),
        "provenance": facts.provenance,
        "provenance_file": PROVENANCE_FILE,
        "training": list(_training(facts)),
        "architecture": _architecture(facts),
        "limits": list(_limits(facts, target)),
    }


def _first_name(base_model: object) -> str:
    """The target, of the front matter's one name or list of them; the owner's to write, so it may be anything."""
    match base_model:
        case str(name) | [str(name), *_] if name.isprintable():
            return name
        case None | []:
            return ""
        case _:
            raise UnusableInput("base_model names no repository", where=CARD, fix="write base_model: org/model")


def _commands(facts: Facts, wishes: Wishes, target: str) -> Iterator[Serving]:
    """How each engine is started that reads the drafter as meant; nothing without a target."""
    report = facts.verification.report
    tokens = {"num_speculative_tokens": report["config"]["num_speculative_tokens"]} if report else {}
    for engine, why in facts.misread.items() if target else ():
        service = Service(drafter=wishes.name, target=target, **tokens)
        line = "" if why else serve_command(engine, facts.drafter, None, service).line
        yield Serving(_title(engine), line, engine, why)


def _title(engine: str) -> str:
    described = load_engine(engine)
    return described.title if described else engine


def _training(facts: Facts) -> Iterator[str]:
    tuned = (facts.provenance or {}).get("finetune")
    if not tuned:
        return
    data = tuned["data"]
    yield f"fine-tuned ({tuned['settings']['trainable']}) for {tuned['steps']} steps on {data['tokens']} tokens"
    yield f"training data: {data['conversations']} conversations, digest {data['digest']}"
    yield f"longest trained length: {data['longest_tokens']} tokens"
    if not tuned["kept"]:
        yield "the training made it no better, so its weights are those of before"


def _architecture(facts: Facts) -> Table:
    drafter = facts.drafter
    ids = drafter.aux_layer_ids
    rows = {
        "layout": facts.layout.title,
        "parameters": f"{sum(info.size for info in facts.checkpoint.tensors.values()) / 1e6:.1f} M, {drafter.dtype}",
        "layers": f"{drafter.num_hidden_layers}, {drafter.architecture} attention",
        "hidden size": f"{drafter.hidden_size}, of the target {drafter.target_hidden_size}",
        "draft vocabulary": f"{drafter.draft_vocab_size} of {drafter.vocab_size} tokens",
        "target states": f"{drafter.num_aux_hidden_states}",
        "layer ids": f"{', '.join(map(str, ids))}: id k is the state that enters layer k of the target" if ids else "",
        "norm on each state (fc_norm)": _yes(drafter.fc_norm),
        "one norm on all states (norm_before_fc)": _yes(drafter.norm_before_fc),
        "feeds back the state after its final norm (norm_output)": _yes(drafter.norm_output),
        "residual after hidden_norm (norm_before_residual)": _yes(drafter.norm_before_residual),
        "RoPE base": f"{drafter.rope_theta:g}",
        "positions": str(drafter.max_position_embeddings or ""),
        "embedding, head": f"{_whose(drafter.embedding)}, {_whose(drafter.head)}",
    }
    return Table("", ["", "value"], [(name, value) for name, value in rows.items() if value])


def _limits(facts: Facts, target: str) -> Iterator[str]:
    drafter = facts.drafter
    yield f"it drafts for {target or 'the target it was trained with'} and its tokenizer only"
    if drafter.pruned:
        size, whole = drafter.draft_vocab_size, drafter.vocab_size
        yield f"it proposes {size} of the target's {whole} tokens; the others are never drafted"
    if drafter.max_position_embeddings:
        yield f"its config declares {drafter.max_position_embeddings} positions"
    if tuned := (facts.provenance or {}).get("finetune"):
        yield f"it was fine-tuned on sequences of up to {tuned['data']['longest_tokens']} tokens"
    if facts.verification.report is None:
        yield "it has not been verified in an engine"
    if drafter.generation == "3.1":
        first = "0.23" if drafter.architecture == "mla" else "0.22"
        yield f"it needs an engine that knows EAGLE 3.1; vLLM does from {first} on"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _whose(own: bool) -> str:
    return "its own" if own else "the target's"
