"""What RocketMQ 5.3.3 can be configured with: all options of its classes as data, and its way to read their values."""
