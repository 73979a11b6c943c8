"""Peak memory of a conversion that renames and of one that casts, against the 250 MiB that any size may use."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.drafters import make_drafter
from benchmarks.measure import peak_mib

_LIMIT_MIB = 250


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Measure, print one line for each kind of work, return MiB by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048, help="MiB of weights")
    parser.add_argument("--folder", default=".", help="where to write")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=options.folder) as folder:
        source = Path(folder, "source")
        make_drafter(source, options.size << 20, "F32")
        kinds: dict[str, list[str]] = {"rename": [], "cast": ["--dtype", "bfloat16"]}
        peaks = {kind: _peak(source, Path(folder, kind), extra) for kind, extra in kinds.items()}
    for kind, peak in peaks.items():
        print(f"memory of a {kind}: {peak / _LIMIT_MIB:.2f}x of {_LIMIT_MIB} MiB ({peak:.0f} MiB, {options.size} MiB)")
    return peaks


def _peak(source: Path, destination: Path, extra: list[str]) -> float:
    return peak_mib("-q", "convert", str(source), str(destination), *extra)


if __name__ == "__main__":
    main()
