"""Many runs as one dataset: traces as Spark frames, findings as tidy tables, judged here or by tasks of Spark.

Only this package, `pipeline` and `campaign.on_spark` import pyspark. May import `pipeline` and what is below it.
"""
