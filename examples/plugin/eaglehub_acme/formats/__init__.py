"""Format specs, one YAML file a layout."""
