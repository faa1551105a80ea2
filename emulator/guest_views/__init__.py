"""What programs outside believe and hold, judged at their end of the wire from what they ask and what they are told."""
