"""The analysis of traces with Spark: one module per oracle, the judged report, its tables and its picture.

Only this package imports pyspark. May import `state` and what is below it.
"""
