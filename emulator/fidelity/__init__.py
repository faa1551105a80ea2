"""Every trap of RocketMQ, and what became of it here."""
