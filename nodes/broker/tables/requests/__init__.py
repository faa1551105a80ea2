"""Requests that wait for a thread, and appends that wait for the lock of the log."""
