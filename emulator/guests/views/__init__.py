"""The beliefs and queues of guests, inferred from the frames that they send and receive."""
