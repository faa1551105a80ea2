"""Many runs as one dataset: tables of traces as Spark frames, findings as tidy tables, on one machine or on a cluster.

Only this package imports pyspark. May import `analysis` and what is below it.
"""
