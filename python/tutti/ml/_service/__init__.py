"""The service: where it is, and its calls (docs/formats/rest.md)."""
