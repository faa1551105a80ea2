"""The exchanges of the requests, by family; `nodes.protocol.registry` has all of them."""
