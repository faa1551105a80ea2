"""The pipeline: silver and gold from the landed tables, as functions from DataFrames to DataFrames.

A function here has no session, reads no file and starts no job; its caller writes or collects what it returns.
May import `lake`, `analysis` and what is below them.
"""
