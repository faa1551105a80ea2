"""The command line `rmqemu`: one module for each command, loaded when it is called."""
