"""Credentials and identities, where scripts of Azure ML's SDK import them from."""
from tutti.ml.entities._datastore import (  # noqa: F401
    AccountKeyConfiguration, NoneCredentialConfiguration, SasTokenConfiguration,
    ServicePrincipalConfiguration)
from tutti.ml.entities._resources import (  # noqa: F401
    AmlTokenConfiguration, IdentityConfiguration, ManagedIdentityConfiguration,
    UserIdentityConfiguration)
