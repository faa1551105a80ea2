"""Clients of RocketMQ 5: producers, push consumers and simple consumers, which know proxies alone."""
