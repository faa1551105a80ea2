"""What keeps a queue for one consumer: brokers, or one of several lock services."""
