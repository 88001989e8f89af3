"""The JSON API under `/api/v1` (DESIGN section 8)."""
