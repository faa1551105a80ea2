"""The rules of a proxy, without tasks, clocks or calls."""
