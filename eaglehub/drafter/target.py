"""What a drafter needs to know of its target, read from the target's config.json alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.checkpoint import read_json_object
from eaglehub.checkpoint.folder import hub_snapshot
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from eaglehub.drafter.drafter import Drafter


@dataclass(frozen=True, slots=True)
class Target:
    """The target's facts; multimodal targets hold them in `text_config`.

    Attributes:
        name: `org/repo` where it is from the Hub or the config says so, else the folder's name.
        revision: commit on the Hub, None for any other folder.
        num_hidden_layers: layers L; aux layer ids run from 0 to L.
        rope_theta: None when the config does not give one base for all layers.
        text: the language model's config as it stands.
        folder: where the config is; weights may be beside it.
    """

    name: str
    architectures: tuple[str, ...]
    model_type: str
    hidden_size: int
    vocab_size: int
    num_hidden_layers: int
    max_position_embeddings: int | None
    rope_theta: float | None
    dtype: str | None
    text: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    revision: str | None = None

    def default_aux_layer_ids(self) -> tuple[int, int, int]:
        """What every engine captures when nothing is said, in the IN convention."""
        layers = self.num_hidden_layers
        return (2, layers // 2, layers - 3)

    def layer_ids_for(self, drafter: Drafter) -> tuple[int, ...]:
        """The states that the drafter reads, in the IN convention."""
        if not drafter.num_aux_hidden_states:  # it reads what lm_head does, which comes with any state
            return (self.num_hidden_layers,)
        return drafter.aux_layer_ids or self.default_aux_layer_ids()


def read_target(path: str | Path) -> Target:
    """Read a target's folder (its config.json is enough) or the config file itself.

    Raises:
        UnusableInput: there is no usable config.
    """
    path = Path(path)
    file = path / "config.json" if path.is_dir() else path
    config = read_json_object(file)
    text = config.get("text_config") or config.get("llm_config") or config
    if not isinstance(text, dict):
        raise UnusableInput("text_config is not an object", where=file.name)
    folder, revision = hub_snapshot(file.absolute().parent) or (file.absolute().parent.name, None)
    name = folder if revision else config.get("_name_or_path") or folder
    return Target(
        name=name if isinstance(name, str) and name.count("/") == 1 and not name.startswith((".", "/")) else folder,
        architectures=_names(config.get("architectures"), file),
        model_type=str(text.get("model_type") or config.get("model_type") or ""),
        hidden_size=_integer(text, "hidden_size", file),
        vocab_size=_integer(text, "vocab_size", file),
        num_hidden_layers=_integer(text, "num_hidden_layers", file),
        max_position_embeddings=_integer(text, "max_position_embeddings", file) if _has_positions(text) else None,
        rope_theta=_rope_theta(text),
        dtype=next(
            (str(holder[key]) for holder in (text, config) for key in ("dtype", "torch_dtype") if holder.get(key)), None
        ),
        # A multimodal target has its quantisation beside its language model's config.
        text={"quantization_config": config.get("quantization_config")} | text,
        folder=file.parent,
        revision=revision,
    )


def _names(value: Any, file: Path) -> tuple[str, ...]:
    if value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return tuple(value or ())
    raise UnusableInput(f"architectures is {value!r}, not a list of names", where=f"target {file.name}")


def _has_positions(config: Mapping[str, Any]) -> bool:
    return config.get("max_position_embeddings") is not None


def _integer(config: Mapping[str, Any], key: str, file: Path) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise UnusableInput(f"{key} is {value!r}, not a positive integer", where=f"target {file.name}")
    return value


def _rope_theta(config: Mapping[str, Any]) -> float | None:
    parameters = config.get("rope_parameters")
    theta = config.get("rope_theta")
    if isinstance(parameters, Mapping):
        theta = parameters.get("rope_theta", theta)
    return float(theta) if isinstance(theta, int | float) else None
