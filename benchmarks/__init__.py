"""Measurements behind what the documentation claims; `make bench` runs them."""
