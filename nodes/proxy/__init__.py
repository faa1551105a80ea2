"""The proxy of RocketMQ 5: clients speak gRPC with it, and it speaks with nameservers and brokers (cluster mode)."""
