"""Convert, validate, upgrade, fine-tune, verify and publish EAGLE-3 drafters for speculative decoding."""

__version__ = "0.1.0"
