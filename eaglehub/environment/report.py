"""The report of `eaglehub env`."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eaglehub import __version__
from eaglehub.environment.hardware import Hardware, describe_hardware, operating_system
from eaglehub.environment.packages import EXTRAS, Package, declared_packages, engines, plugins
from eaglehub.report.report import Report

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class EnvironmentReport(Report):
    """Versions and hardware; `engines` maps the name of each vLLM distribution to its version, `plugins` that of each
    package that extends eaglehub.
    """

    kind: ClassVar[str] = "env"

    python: str
    os: str
    packages: tuple[Package, ...]
    engines: dict[str, str]
    plugins: dict[str, str]
    hardware: Hardware

    def data(self) -> dict[str, Any]:
        """See `schemas/report-env.schema.json`."""
        return {
            "python": self.python,
            "os": self.os,
            "packages": [asdict(package) for package in self.packages],
            "extras": [{"name": extra, "adds": adds, "missing": self.missing(extra)} for extra, adds in EXTRAS.items()],
            "engines": [{"name": name, "version": version} for name, version in self.engines.items()],
            "plugins": [{"name": name, "version": version} for name, version in self.plugins.items()],
            "hardware": asdict(self.hardware),
        }

    def missing(self, extra: str) -> list[str]:
        """Packages of the extra that are not installed."""
        return [package.name for package in self.packages if package.extra == extra and package.version is None]

    def render(self, console: Console) -> None:
        """Print one fact a line."""
        versions = {package.name: package.version or "missing" for package in self.packages}
        sections = {
            "software": {"eaglehub": __version__, "python": self.python, "os": self.os},
            "packages": versions | self.engines | self.plugins,
            "extras": {extra: self._extra_line(extra) for extra in EXTRAS},
            "hardware": self._hardware_lines(),
        }
        width = max(len(name) for facts in sections.values() for name in facts)
        for title, facts in sections.items():
            console.print(title, style="bold")
            for name, value in facts.items():
                console.print(f"  {name:<{width}}  {value}", soft_wrap=True)

    def _extra_line(self, extra: str) -> str:
        missing = self.missing(extra)
        state = f"lacks {', '.join(missing)}; pip install 'eaglehub[{extra}]'" if missing else "installed"
        return f"{EXTRAS[extra]} ({state})"

    def _hardware_lines(self) -> dict[str, str]:
        machine = self.hardware
        gpus = {f"gpu {i}": f"{gpu.vendor} {gpu.name}, {_gib(gpu.memory_mib)}" for i, gpu in enumerate(machine.gpus)}
        return {
            "cpu": f"{machine.cpu} ({machine.architecture}), {machine.cores} cores",
            "memory": _gib(machine.memory_mib),
            **(gpus or {"gpu": "none found"}),
            **{f"note {i}": note for i, note in enumerate(machine.notes, start=1)},
        }


def describe_environment() -> EnvironmentReport:
    """Gather the facts about this process and its machine.

    Raises:
        EnvironmentProblem: eaglehub is not installed.
    """
    return EnvironmentReport(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        os=operating_system(),
        packages=tuple(declared_packages()),
        engines=engines(),
        plugins=plugins(),
        hardware=describe_hardware(),
    )


def _gib(mib: int | None) -> str:
    return "memory unknown" if mib is None else f"{mib / 1024:.1f} GiB"
