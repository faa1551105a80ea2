"""gRPC over HTTP/2: bytes to calls and back, and the messages of `apache.rocketmq.v2`.

Only this package imports `h2` and `protobuf`, which the extra `proxy` installs. `connection` and what it is made of are
synchronous; `server` is a flow over one stream of bytes.
"""
