"""What a scenario is: its values, and what follows from them: addresses, bounds, changes, differences."""
