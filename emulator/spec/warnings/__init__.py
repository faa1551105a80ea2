"""Settings that RocketMQ accepts silently and that do harm."""
