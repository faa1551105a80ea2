"""RocketMQ's own wire, for programs that are not ours: frames, headers and bodies as real clients write them."""
