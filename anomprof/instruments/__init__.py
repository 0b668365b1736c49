"""Instruments: what yields readings and leaves the trained numbers as they are."""
