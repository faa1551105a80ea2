"""The analysis of a run's trace: one module per oracle, the judge, the report, its tables and its picture.

Oracles read rows in order of time and know nothing of files or Spark. May import `state` and what is below it.
"""
