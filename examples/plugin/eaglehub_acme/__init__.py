"""What eaglehub must know of Acme's drafters."""
