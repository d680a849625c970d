"""ValidationResult: what is wrong with a job that was not submitted."""
from __future__ import annotations

from typing import Dict, List, Optional


class ValidationResult:
    """The faults and warnings of a job, a line each."""

    def __init__(self, errors: List[str], warnings: List[str]) -> None:
        self.errors, self.warnings = errors, warnings

    @property
    def passed(self) -> bool:
        """Whether it would be taken."""
        return not self.errors

    @property
    def error_messages(self) -> Dict[str, str]:
        """The faults by their places ("job:3")."""
        found: Dict[str, str] = {}
        for line in self.errors:
            place, colon, message = line.partition(": ")
            key = place if colon else "*"
            found[key] = found[key] + "\n" + message if key in found else (message or line)
        return found

    def __repr__(self) -> str:
        return "\n".join(self.errors + self.warnings) or "passed"

    def __bool__(self) -> Optional[bool]:  # type: ignore[override]
        return self.passed
