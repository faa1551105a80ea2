"""Scenario files: TOML, sections, options, secrets, code of users, and the reference of all that."""
