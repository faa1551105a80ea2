"""The proxy of RocketMQ 5: it speaks gRPC or remoting with clients, and remoting with nameservers and brokers."""
