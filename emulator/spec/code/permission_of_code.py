"""How a user allows the code that a file names, and where it needs no permission; commands name both."""

TRUSTED_FOLDERS = "RMQEMU_TRUSTED_FOLDERS"
"""Variable of the environment with folders whose scenario files may run code, as in PATH; only absolute ones count."""
ALLOW_CODE = "--allow-code"
