"""What scripts give as `auth`: accepted and not used, since the service has its token."""
from __future__ import annotations

from typing import Any


class AbstractAuthentication:
    """Credentials, which are not looked at."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class InteractiveLoginAuthentication(AbstractAuthentication):
    """Nobody is asked."""


class AzureCliAuthentication(AbstractAuthentication):
    """The program az is not asked."""


class ArmTokenAuthentication(AbstractAuthentication):
    """A token, which is not kept."""


class AzureMLTokenAuthentication(AbstractAuthentication):
    """A token, which is not kept."""


class MsiAuthentication(AbstractAuthentication):
    """There are no identities of machines."""


class ServicePrincipalAuthentication(AbstractAuthentication):
    """A service principal, whose password is not kept."""


class TokenAuthentication(AbstractAuthentication):
    """A function for tokens, which is not called."""
