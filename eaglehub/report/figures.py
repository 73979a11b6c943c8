"""Charts with matplotlib, which is an extra and draws without a screen."""

from __future__ import annotations

from typing import Any

from eaglehub.errors import EnvironmentProblem


def figure_class() -> Any:
    """Matplotlib's `Figure`.

    Raises:
        EnvironmentProblem: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem("charts need matplotlib", fix="pip install 'eaglehub[report]'") from error
    return Figure
