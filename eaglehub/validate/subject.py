"""What is judged: one folder with all that could be read of it, and why the rest could not."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eaglehub.checkpoint import open_checkpoint, parse_json_object
from eaglehub.checkpoint.folder import LocalFolder
from eaglehub.checkpoint.layout import CONFIG, PICKLE_SUFFIXES, SAFETENSORS
from eaglehub.drafter.tensors import is_scale
from eaglehub.errors import EnvironmentProblem, UnusableInput
from eaglehub.reading import read_drafter
from eaglehub.validate.rule import Hit, Need
from eaglehub.validate.served import served_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eaglehub.checkpoint import Checkpoint
    from eaglehub.checkpoint.folder import Folder
    from eaglehub.drafter.drafter import Drafter
    from eaglehub.drafter.target import Target
    from eaglehub.engines import Engine
    from eaglehub.formats.spec import FormatSpec
    from eaglehub.reading import Answers, Reading

T = TypeVar("T")
# Why something was not looked for at all.
_DENIED = {
    Need.VALUES: "--no-values was given",
    Need.ALL_VALUES: "--no-values was given",
    Need.ENGINE: "--engine none was given",
}
_FAR_AWAY = "the Hub is asked for headers only, unless with --values"
# Targets with latent attention, whose models treat layer ids in their own way.
_LATENT = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25", "glm4_moe_lite")
_HYBRID = ("nemotron_h", "qwen3_next", "falcon_h1", "bamba", "jamba", "granitemoehybrid")


@dataclass(frozen=True, slots=True)
class Settings:
    """How drafters are to be judged.

    Attributes:
        engine: as which engine would serve them; None judges the layout alone.
        target: the target's facts, when given.
        values: whether tensors may be read, not only their headers; of a folder that is far away, small ones.
        pipeline: whether the engine would split the target into pipeline stages.
        forced_format: format id that ends detection.
        answers: the user's answers to what drafters leave open.
    """

    engine: Engine | None = None
    target: Target | None = None
    values: bool = True
    pipeline: bool = False
    forced_format: str | None = None
    answers: Answers | None = None


@dataclass
class Subject:
    """One folder. Properties that the folder could not give raise; checks state their needs to be safe from that.

    Attributes:
        folder: where it is.
        files: bytes of its regular files, sorted by name.
        settings: how it is judged.
        hits: what opening it ran into.
        exit_code: 0, or that of the error that opening ran into.
    """

    folder: Folder
    files: Mapping[str, int]
    settings: Settings
    raw_config: dict[str, Any] | None = None
    checkpoint: Checkpoint | None = None
    read: Reading | None = None
    target_weights: Checkpoint | None = None
    hits: list[Hit] = field(default_factory=list)
    exit_code: int = 0

    @property
    def engine(self) -> Engine | None:
        """The engine that would serve it."""
        return self.settings.engine

    @property
    def target(self) -> Target | None:
        """The target's facts."""
        return self.settings.target

    @property
    def config(self) -> dict[str, Any]:
        """config.json."""
        return _there(self.raw_config)

    @property
    def open(self) -> Checkpoint:
        """The opened checkpoint."""
        return _there(self.checkpoint)

    @property
    def reading(self) -> Reading:
        """What it says in canonical terms."""
        return _there(self.read)

    @property
    def drafter(self) -> Drafter:
        """The canonical description, as far as errors allow."""
        return _there(self.reading.sketch)

    @property
    def format(self) -> FormatSpec:
        """Who wrote it."""
        return self.reading.detection.spec

    @property
    def wrapped(self) -> bool:
        """Whether the engine unwraps its config."""
        wrapper = self.engine.wrapper if self.engine else None
        return wrapper is not None and wrapper.format == self.format.id

    @cached_property
    def flat_config(self) -> Mapping[str, Any]:
        """The config with a nested layer config lifted to the top level."""
        layer = self.config.get(self.format.layer_config) if self.format.layer_config else None
        return (layer if isinstance(layer, dict) else {}) | self.config

    @cached_property
    def served(self) -> Mapping[str, Any]:
        """The config as the engine's drafter class sees it."""
        return served_config(self.config, self.engine, self.format.id)

    @property
    def positions(self) -> tuple[int, int]:
        """max_position_embeddings as declared and the target's; 0 where not given."""
        declared = self.flat_config.get("max_position_embeddings")
        wanted = self.target.max_position_embeddings if self.target else 0
        return (declared if isinstance(declared, int) else 0, wanted if isinstance(wanted, int) else 0)

    @property
    def latent_target(self) -> bool:
        """Whether the target has latent attention; without a target in hand, an MLA drafter is taken to serve one."""
        return self.target.model_type in _LATENT if self.target else self.drafter.architecture == "mla"

    @property
    def traits(self) -> frozenset[str]:
        """What an engine's limits may name: the drafter's features, its format, and its relation to the target."""
        ids = self.drafter.aux_layer_ids or ()
        layers = self.target.num_hidden_layers if self.target else None
        declared, wanted = self.positions
        conditions = {
            f"format:{self.format.id}": True,
            "target:latent": self.latent_target,
            "target:hybrid": self.target is not None and self.target.model_type in _HYBRID,
            "final_state": layers is not None and layers in ids,
            "embedding_state": 0 in ids,
            "short_positions": declared < wanted,
            "shared_embedding": not self.drafter.embedding,
            "own_head": self.drafter.head,
            "quantized_head": any(name.startswith("lm_head.") and is_scale(name) for name in self.reading.tensors),
            "pipeline": self.settings.pipeline,
        }
        targets = {f"target:{name}" for name in (self.target.architectures if self.target else ())}
        return self.drafter.traits() | targets | {name for name, holds in conditions.items() if holds}

    @cached_property
    def lacking(self) -> dict[Need, str]:
        """What is not to be had, with the reason."""
        found = {
            Need.CONFIG: self.raw_config is not None,
            Need.TENSORS: self.checkpoint is not None,
            Need.FORMAT: self.read is not None,
            Need.DRAFTER: self.read is not None and self.read.sketch is not None,
            Need.VALUES: self.settings.values,
            Need.ALL_VALUES: self.settings.values and not self.folder.headers_only,
            Need.TARGET: self.target is not None,
            Need.TARGET_WEIGHTS: self.target_weights is not None,
            Need.ENGINE: self.engine is not None,
        }
        denied = _DENIED | ({Need.ALL_VALUES: _FAR_AWAY} if self.settings.values else {})
        return {need: denied.get(need, f"needs {need.value}") for need, there in found.items() if not there}

    def attempt(self, step: Callable[[], Any]) -> Any:
        """The step's result, or None when the input or the machine does not allow it, which is taken note of."""
        try:
            return step()
        except UnusableInput as error:
            self._note(error.code, error)
        except (EnvironmentProblem, PermissionError) as error:
            self._note("EH111", error)
        return None

    def _note(self, code: str, error: UnusableInput | EnvironmentProblem | PermissionError) -> None:
        if isinstance(error, PermissionError):
            error = EnvironmentProblem("may not be read", where=Path(str(error.filename)).name)
        self.exit_code = max(self.exit_code, error.exit_code)
        # Never a path: it would tell of the machine.
        hit = Hit(code, error.what, Path(error.where).name, error.fix)
        if hit not in self.hits:
            self.hits.append(hit)


def open_subject(place: Path | Folder, settings: Settings) -> Subject:
    """Read of a drafter what can be read.

    Args:
        place: its folder; a config.json in it stands for the folder, and a weight file for itself alone.
        settings: how it will be judged.

    Raises:
        UsageProblem: one of the user's answers contradicts what the file says for certain.
    """
    folder, source = _folder_and_source(place)
    subject = Subject(folder, _files(folder), settings)
    subject.checkpoint = subject.attempt(lambda: open_checkpoint(source))
    if subject.checkpoint:
        subject.raw_config = subject.checkpoint.config
    elif CONFIG in subject.files:
        subject.raw_config = subject.attempt(lambda: parse_json_object(folder.read(CONFIG), CONFIG))
    if subject.checkpoint:
        checkpoint = subject.checkpoint
        subject.read = subject.attempt(
            lambda: read_drafter(
                checkpoint,
                forced_format=settings.forced_format,
                answers=settings.answers,
                target=settings.target,
                values=settings.values,
            )
        )
    if settings.target and settings.target.folder and settings.values:
        subject.target_weights = _target_weights(settings.target.folder)
    return subject


@lru_cache(maxsize=1)
def _target_weights(folder: Path) -> Checkpoint | None:
    return open_checkpoint(folder) if any(file.endswith(SAFETENSORS) for file in _files(LocalFolder(folder))) else None


def _folder_and_source(place: Path | Folder) -> tuple[Folder, Path | Folder]:
    """The folder that is judged, and what of it is opened."""
    if not isinstance(place, Path):
        return place, place
    if place.name == CONFIG:
        return LocalFolder(place.parent), place.parent
    return LocalFolder(place.parent if place.suffix in (SAFETENSORS, *PICKLE_SUFFIXES) else place), place


def _files(folder: Folder) -> Mapping[str, int]:
    """Its files; none where the folder cannot be listed, which opening it tells in its own words."""
    try:
        return folder.sizes()
    except UnusableInput:
        return {}


def _there(value: T | None) -> T:
    if value is None:
        raise ValueError("a check asked for what it did not say it needs")
    return value
