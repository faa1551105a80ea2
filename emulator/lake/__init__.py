"""Bronze: many runs as one dataset of Parquet files, where Spark and pyarrow read them.

May import `analysis` and what is below it; pyarrow, never pyspark.
"""
