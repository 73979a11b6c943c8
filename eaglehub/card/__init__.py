"""The model card: written from what is known of a drafter, kept as its owner extends it."""
