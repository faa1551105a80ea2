"""Impacts: how bad each thing is that a report is about, in one number, and which disturbances led to it."""
