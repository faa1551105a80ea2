"""Results as a pandas frame, for notebooks and reports."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from emulator.statistics.estimates import Estimate
from emulator.statistics.kaplan_meier import Survival
from emulator.statistics.pairs import Comparison


def table(results: Iterable[Estimate] | Iterable[Comparison] | Iterable[Survival]) -> Any:
    """Results of one kind as a pandas frame, one row each.

    Args:
        results: estimates, comparisons or survivals.

    Returns:
        Each figure has three columns: `mean`, `mean_low`, `mean_high`. NaN: cannot be known; infinite: not yet.
    """
    return pd.DataFrame([result.row() for result in results])
