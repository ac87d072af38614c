"""Reasons for the differences that `report.py` finds."""

INTRODUCTION = "# Results\n"

# Roles, letter, verdict of each implementation (regular expressions), reason.
EXPLANATIONS: list[tuple[str, str, tuple[str, str, str], str]] = []
