"""Guests, which are real RocketMQ programs, as processes on the emulated network (mode `live`).

`remoting` and `grpc` are the protocols that they speak, `views` is what their frames reveal of what they believe.

May import `history` and what is below it.
"""
