"""What travels between nodes: the remoting command, its codes, headers, bodies and nouns."""
