"""Tables of a broker group: its members, the role of a replica, pre-online, copies of metadata."""
