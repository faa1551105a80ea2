"""Tables of replication: frames and ends of HA links, epochs, the SyncStateSet."""
