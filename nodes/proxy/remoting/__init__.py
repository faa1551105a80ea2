"""The remoting port of a proxy: requests of RocketMQ 4's clients, most of which brokers answer."""
