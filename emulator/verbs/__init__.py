"""What people say to a running cluster: one registry for the console, `rmqemu ctl` and scripts."""
