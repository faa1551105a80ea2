"""How two runs differ: scenario, first row, beliefs and owners, what led to that and what followed, counts.

May import `why` and what is below it.
"""

from emulator.comparison.compare import ComparisonError, RunComparison, compare_runs

__all__ = ["ComparisonError", "RunComparison", "compare_runs"]
