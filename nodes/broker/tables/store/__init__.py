"""Tables of the message store: the commit log, its index and its files, and messages before they are stored."""
