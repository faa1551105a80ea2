"""Many runs as one dataset: traces as Spark frames, findings as tidy tables, judged here or by tasks of Spark.

Only this package imports pyspark. May import `analysis` and what is below it.
"""
