"""What all tests share."""

pytest_plugins = ["support.trap_marks"]
