"""The version, stored in everything that is written."""

__version__ = "0.1.0"
