"""What this machine is: versions, extras and hardware, with no secret, path or host name in it."""

from __future__ import annotations

from eaglehub.environment.report import EnvironmentReport, describe_environment

__all__ = ["EnvironmentReport", "describe_environment"]
