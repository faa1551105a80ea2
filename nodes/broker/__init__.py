"""The broker: registers with the nameservers, keeps its clients' membership, offsets and messages."""
