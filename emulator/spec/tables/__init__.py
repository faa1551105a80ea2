"""Tables of a scenario file: their keys and options, the mistakes in them, sizes and releases as people write them."""
