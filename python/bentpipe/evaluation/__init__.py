"""Evaluation of a window rule by the criteria of RFC 9743 (BCP 133)."""
