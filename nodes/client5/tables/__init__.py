"""The rules of RocketMQ 5 clients, without tasks, clocks or calls."""
