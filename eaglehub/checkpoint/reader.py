"""Opening a checkpoint: its config and tensor index at once, its weights only when asked for, in bounded memory."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from eaglehub.checkpoint.dtypes import numpy_dtype
from eaglehub.checkpoint.hashing import RunningHash
from eaglehub.checkpoint.header import TensorInfo, read_header, rows_per_chunk
from eaglehub.checkpoint.jsonfile import parse_json_object
from eaglehub.checkpoint.layout import CONFIG, SAFETENSORS, Layout, find_layout
from eaglehub.checkpoint.pickles import PickleStore
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from eaglehub.checkpoint.folder import File, Folder

_NAMES_SHOWN = 3


class _Store(Protocol):
    """The tensors of one weight file."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]

    def chunks(self, info: TensorInfo) -> Iterator[npt.NDArray[Any]]: ...


class _SafetensorsStore:
    def __init__(self, source: File) -> None:
        header = read_header(source)
        self._source = source
        self._offsets = header.offsets
        self.tensors = header.tensors
        self.metadata = header.metadata
        self.hash: RunningHash | None = None

    def chunks(self, info: TensorInfo) -> Iterator[npt.NDArray[Any]]:
        dtype = numpy_dtype(info.dtype)
        if info.size == 0:
            import numpy as np

            yield np.empty(info.shape, dtype)
            return
        rows = rows_per_chunk(info)
        row_bytes = info.nbytes // info.shape[0] if info.shape else info.nbytes
        position = self._offsets[info.name]
        for data in self._source.blocks(position, info.nbytes, rows * row_bytes):
            if self.hash:
                self.hash.offer(position, data)
            position += data.size
            shape = (data.size // row_bytes, *info.shape[1:]) if info.shape else ()
            yield data.view(dtype).reshape(shape)


class Checkpoint:
    """A drafter's config and tensors; made by `open_checkpoint`.

    Attributes:
        name: base name of the folder, never a path; `org/repo` of one that is or was on the Hub.
        revision: its commit there, None for any other folder.
        headers_only: whether large tensors are too far away to be looked into.
        config: config.json.
        config_bytes: config.json as it is on disk.
        tensors: what is declared of each tensor, in file order.
        metadata: the safetensors `__metadata__`, merged over shards.
        weight_files: the files that hold the tensors.
        index_file: the index that named the shards, empty without one.
        other_files: every other regular file directly in the folder, sorted; weights that were not chosen included.
    """

    def __init__(self, layout: Layout) -> None:
        self._folder = layout.folder
        self.name = layout.name
        self.revision = layout.folder.revision
        self.headers_only = layout.folder.headers_only
        self.config_bytes = layout.folder.read(CONFIG)
        self.config: dict[str, Any] = parse_json_object(self.config_bytes, f"{layout.name}/{CONFIG}")
        self.weight_files = layout.weights
        self.index_file = layout.index
        self.other_files = layout.others
        self._sources = {file: self._folder.file(file) for file in (*layout.weights, CONFIG)}
        self._stores = {file: _open_store(self._sources[file]) for file in layout.weights}
        self.tensors = _merge(self._stores, layout)
        self.metadata = {key: value for store in self._stores.values() for key, value in store.metadata.items()}

    def path_of(self, file: str) -> Path:
        """Path on this machine of a file of this checkpoint, given as one of its plain names."""
        return self._folder.path(file)

    def leads_outside(self, file: str) -> bool:
        """Whether a file of this checkpoint is a link to one that is not."""
        return self._folder.leads_outside(file)

    def chunks(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """A tensor in blocks of rows (first dimension) of at most `CHUNK_BYTES`, in C order and its exact type.

        A scalar or empty tensor comes as one block of its shape; a single row larger than that as it is.

        Raises:
            UnusableInput: the file changed or ended meanwhile.
        """
        info = self.tensors[name]
        return self._stores[info.file].chunks(info)

    def read(self, name: str) -> npt.NDArray[Any]:
        """One whole tensor; for small ones."""
        blocks = list(self.chunks(name))
        if len(blocks) == 1:
            return blocks[0]
        import numpy as np

        return np.concatenate(blocks)

    def sha256(self, file: str) -> str:
        """Hex digest of one file of the checkpoint."""
        return (self._sources.get(file) or self._folder.file(file)).sha256()

    @contextmanager
    def hashing(self) -> Iterator[Callable[[], dict[str, str]]]:
        """Hash config.json and every weight file while their tensors are read.

        Gives a function that returns each file's hex SHA-256; it is quick when all tensors were read in file order.
        """
        hashes = {file: RunningHash(source) for file, source in sorted(self._sources.items())}
        stores = {file: store for file, store in self._stores.items() if isinstance(store, _SafetensorsStore)}
        for file, store in stores.items():
            store.hash = hashes[file]
        try:
            yield lambda: {file: running.finish() for file, running in hashes.items()}
        finally:
            for store in stores.values():
                store.hash = None
            for running in hashes.values():
                running.stop()

    def hash_files(self) -> dict[str, str]:
        """Hex SHA-256 of config.json and every weight file, by name."""
        with self.hashing() as hashes:
            return hashes()


def open_checkpoint(place: str | Path | Folder) -> Checkpoint:
    """Open the checkpoint in a folder, or the one of a single weight file.

    Only headers are read (pickle files are mapped); torch is imported for pickle files alone.

    Raises:
        UnusableInput: it is not a usable checkpoint.
        EnvironmentProblem: a pickle file, and no (safe) torch.
        HubProblem: the folder is on the Hub, which refused or failed.
    """
    return Checkpoint(find_layout(Path(place) if isinstance(place, str) else place))


def _open_store(source: File) -> _Store:
    return _SafetensorsStore(source) if source.name.endswith(SAFETENSORS) else PickleStore(source)


def _merge(stores: dict[str, _Store], layout: Layout) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for file, store in stores.items():
        for name, info in store.tensors.items():
            if name in tensors:
                raise UnusableInput(
                    f"tensor {name!r} is in both {tensors[name].file} and {file}", where=layout.name, code="EH106"
                )
            tensors[name] = info
    if not tensors:
        raise UnusableInput("the weights hold no tensors", where=layout.name, code="EH104")
    if layout.weight_map is not None:
        _check_index(layout.weight_map, tensors, f"{layout.name}/{layout.index}")
    return tensors


def _check_index(weight_map: dict[str, str], tensors: dict[str, TensorInfo], where: str) -> None:
    missing = [name for name, file in weight_map.items() if name not in tensors or tensors[name].file != file]
    if missing:
        fault = f"names tensors that are not in their files: {_shown(missing)}"
        raise UnusableInput(fault, where=where, code="EH106")
    if extra := [name for name in tensors if name not in weight_map]:
        raise UnusableInput(f"does not name tensors that are in the files: {_shown(extra)}", where=where, code="EH106")


def _shown(names: list[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
