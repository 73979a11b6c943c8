"""What differs between two drafters: config keys and tensor values."""

from __future__ import annotations

from eaglehub.diff.config import diff_configs
from eaglehub.diff.report import DiffReport, bytes_to_compare, diff_checkpoints

__all__ = ["DiffReport", "bytes_to_compare", "diff_checkpoints", "diff_configs"]
