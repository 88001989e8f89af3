"""Chaos: real processes under faults at random moments, judged by what they wrote outside the database."""
