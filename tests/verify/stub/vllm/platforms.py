"""A machine that is no CPU, so that the faults of CPU builds are not looked for."""

from types import SimpleNamespace

current_platform = SimpleNamespace(is_cpu=lambda: False)
