"""Whether two sets of samples may come from the same distribution."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_SHUFFLES = 10_000


def chi_square_p(strata: Sequence[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> float:
    """P-value of the chi-square statistic for homogeneity, summed over pairs of samples.

    The distribution of the statistic comes from shuffling (the multivariate hypergeometric one, drawn directly) and not
    from its limit, which many rare tokens never reach.

    Args:
        strata: pairs of samples; each pair has its own distribution.
    """
    rng = np.random.default_rng(0)
    observed, shuffled = 0.0, np.zeros(_SHUFFLES)
    for one, other in strata:
        counts = np.array(list((Counter(one) + Counter(other)).values()))
        first = Counter(one)
        seen = np.array([first[key] for key in Counter(one) + Counter(other)])
        observed += float(_statistic(seen[None], counts)[0])
        draws = rng.multivariate_hypergeometric(counts, len(one), size=_SHUFFLES, method="marginals")
        shuffled += _statistic(draws, counts)
    # The slack takes equal statistics for equal whatever the order of summation.
    return float((1 + np.count_nonzero(shuffled >= observed - 1e-9)) / (1 + _SHUFFLES))


def _statistic(seen: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Chi-square of each row of `seen`, the counts [shuffles, categories] in the first sample."""
    drawn = seen.sum(axis=1)[0]
    share = drawn / counts.sum()
    spread = counts * share * (1 - share)
    statistic: np.ndarray[Any, np.dtype[np.float64]] = ((seen - counts * share) ** 2 / spread).sum(axis=1)
    return statistic
