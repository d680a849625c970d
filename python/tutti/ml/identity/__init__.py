"""Credentials within a job: accepted and not used."""
from __future__ import annotations

from typing import Any

from tutti.ml.exceptions import ClientAuthenticationError


class CredentialUnavailableError(ClientAuthenticationError):
    """There is no credential."""


class AzureMLOnBehalfOfCredential:
    """Accepted by MLClient and not used; it has no token."""

    def __init__(self, **kwargs: Any) -> None:
        pass

    def get_token(self, *scopes: str, **kwargs: Any) -> Any:
        """Raises CredentialUnavailableError."""
        raise CredentialUnavailableError("a job of tutti's has no token of Azure's")

    def close(self) -> None:
        """Nothing."""
