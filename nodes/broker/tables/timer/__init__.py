"""Tables of messages that wait: delay levels, the timer wheel and its log."""
