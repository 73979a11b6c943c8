"""CPU, memory and GPUs, from the operating system and the GPU vendors' own tools."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MIB = 1 << 20
_TOOL_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Attributes:
        memory_mib: memory in MiB, None when the tool does not say.
        driver: driver version, empty when the tool does not say.
    """

    vendor: str
    name: str
    memory_mib: int | None
    driver: str


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machine.

    Attributes:
        cores: cores this process may use.
        memory_mib: physical memory in MiB, None where the system does not say.
        notes: GPU tools that are installed and did not answer.
    """

    cpu: str
    architecture: str
    cores: int
    memory_mib: int | None
    gpus: tuple[Gpu, ...]
    notes: tuple[str, ...]


def describe_hardware() -> Hardware:
    """Look at this machine; every GPU tool gets a few seconds."""
    gpus: list[Gpu] = []
    notes: list[str] = []
    for command, read in _GPU_TOOLS:
        if gpus or not shutil.which(command[0]):
            continue
        try:
            gpus += read(_answer(command))
        except subprocess.TimeoutExpired:
            notes.append(f"{command[0]} did not answer within {_TOOL_SECONDS} s")
        except subprocess.CalledProcessError as error:
            notes.append(f"{command[0]} failed with exit code {error.returncode}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            notes.append(f"{command[0]} gave an answer that cannot be read")
    return Hardware(_cpu_model(), platform.machine(), _cores(), _memory_mib(), tuple(gpus), tuple(notes))


def operating_system() -> str:
    """Name and version of the operating system, with the kernel's on Linux."""
    if sys.platform == "linux":
        try:
            distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
        except (OSError, KeyError):
            distribution = "Linux"
        return f"{distribution}, kernel {platform.release()}"
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def _answer(command: tuple[str, ...]) -> str:
    done = subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", errors="replace", timeout=_TOOL_SECONDS
    )
    return done.stdout


def _read_nvidia_smi(answer: str) -> list[Gpu]:
    """Read lines of `name, MiB, driver`; memory is `[N/A]` on systems that share it with the CPU."""
    gpus = []
    for line in filter(None, answer.splitlines()):
        name, memory, driver = (field.strip() for field in line.rsplit(",", 2))
        gpus.append(Gpu("NVIDIA", name, int(memory) if memory.isdigit() else None, driver))
    return gpus


def _read_amd_smi(answer: str) -> list[Gpu]:
    """Read a list of GPUs, which newer versions wrap in `gpu_data`; memory is in units of 2**20 bytes."""
    found = json.loads(answer)
    cards: list[dict[str, Any]] = found["gpu_data"] if isinstance(found, dict) else found
    return [Gpu("AMD", card["asic"]["market_name"], int(card["vram"]["size"]["value"]), "") for card in cards]


def _read_rocm_smi(answer: str) -> list[Gpu]:
    """Read an object with a member for each card; the case of its keys changed between versions."""
    cards = {name: card for name, card in json.loads(answer).items() if name.startswith("card")}
    gpus = []
    for card in cards.values():
        fields = {key.lower(): value for key, value in card.items()}
        gpus.append(Gpu("AMD", fields["card series"], int(fields["vram total memory (b)"]) // _MIB, ""))
    return gpus


_GPU_TOOLS: tuple[tuple[tuple[str, ...], Callable[[str], list[Gpu]]], ...] = (
    (
        ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"),
        _read_nvidia_smi,
    ),
    (("amd-smi", "static", "--asic", "--vram", "--json"), _read_amd_smi),
    (("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"), _read_rocm_smi),
)


def _cpu_model() -> str:
    """Model name as the system knows it; ARM Linux names none, then the architecture has to do."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    if sys.platform == "darwin":
        return _answer(("sysctl", "-n", "machdep.cpu.brand_string")).strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_mib() -> int | None:
    if sys.platform == "win32":
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
