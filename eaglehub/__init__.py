"""Convert, validate, upgrade and verify EAGLE-3 drafters for speculative decoding."""

__version__ = "0.1.0"
