"""Datastores: stores that jobs take data from, by name."""
from __future__ import annotations

from typing import Any, ClassVar, Dict, Mapping, Optional, Tuple

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity


class AccountKeyConfiguration(Entity):
    """The key of a storage account."""
    _keys = ("account_key",)
    type = "account_key"

    @parameters_of("AccountKeyConfiguration")
    def __init__(self, *, account_key: Optional[str] = None) -> None:
        self.account_key = account_key

    def __repr__(self) -> str:
        return "AccountKeyConfiguration(…)"

    __str__ = __repr__


class SasTokenConfiguration(Entity):
    """A shared access signature."""
    _keys = ("sas_token",)
    type = "sas"

    @parameters_of("SasTokenConfiguration")
    def __init__(self, *, sas_token: Optional[str] = None) -> None:
        self.sas_token = sas_token

    def __repr__(self) -> str:
        return "SasTokenConfiguration(…)"

    __str__ = __repr__


class ServicePrincipalConfiguration(Entity):
    """A service principal of Entra ID with its secret."""
    _keys = ("authority_url", "resource_url", "tenant_id", "client_id", "client_secret")
    type = "service_principal"

    @parameters_of("ServicePrincipalConfiguration")
    def __init__(self, *, client_secret: Optional[str] = None, tenant_id: Optional[str] = None,
                 client_id: Optional[str] = None, resource_url: Optional[str] = None,
                 authority_url: Optional[str] = None) -> None:
        self.client_secret, self.tenant_id, self.client_id = client_secret, tenant_id, client_id
        self.resource_url, self.authority_url = resource_url, authority_url

    def __repr__(self) -> str:
        return "ServicePrincipalConfiguration(…)"

    __str__ = __repr__


class NoneCredentialConfiguration(Entity):
    """Public data."""
    type = "none"


class Datastore(Entity):
    """A store with a name: azureml://datastores/NAME/paths/PATH."""
    _keys: ClassVar[Tuple[str, ...]] = ("name", "type", "description", "tags", "credentials")
    type: Optional[str] = None

    def _set_datastore(self, *, name: str, description: Optional[str],
                       tags: Optional[Dict[str, str]], properties: Optional[Dict[str, str]],
                       credentials: Any) -> None:
        self.name, self.description = name, description
        self.tags, self.properties = dict(tags or {}), dict(properties or {})
        self.credentials = credentials

    @property
    def id(self) -> str:
        """Its address."""
        return f"azureml://datastores/{self.name}"

    def __repr__(self) -> str:
        document = {**self._to_dict(), "credentials": "…"}
        return f"{type(self).__name__}({document!r})"

    __str__ = __repr__


class AzureBlobDatastore(Datastore):
    """A container of Azure Blob Storage."""
    _keys = ("name", "type", "description", "tags", "account_name", "container_name",
             "endpoint", "protocol", "credentials")
    type = "azure_blob"

    @parameters_of("AzureBlobDatastore")
    def __init__(self, *, name: str, account_name: str, container_name: str,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 endpoint: Optional[str] = None, protocol: str = "https",
                 properties: Optional[Dict[str, str]] = None, credentials: Any = None) -> None:
        self._set_datastore(name=name, description=description, tags=tags, properties=properties,
                            credentials=credentials)
        self.account_name, self.container_name = account_name, container_name
        self.endpoint, self.protocol = endpoint, protocol


class AzureDataLakeGen2Datastore(Datastore):
    """A file system of Azure Data Lake Storage."""
    _keys = ("name", "type", "description", "tags", "account_name", "filesystem",
             "endpoint", "protocol", "credentials")
    type = "azure_data_lake_gen2"

    @parameters_of("AzureDataLakeGen2Datastore")
    def __init__(self, *, name: str, account_name: str, filesystem: str,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 endpoint: str = "core.windows.net", protocol: str = "https",
                 properties: Optional[Dict[str, str]] = None, credentials: Any = None) -> None:
        self._set_datastore(name=name, description=description, tags=tags, properties=properties,
                            credentials=credentials)
        self.account_name, self.filesystem = account_name, filesystem
        self.endpoint, self.protocol = endpoint, protocol


class AzureFileDatastore(Datastore):
    """A share of Azure Files."""
    _keys = ("name", "type", "description", "tags", "account_name", "file_share_name",
             "endpoint", "protocol", "credentials")
    type = "azure_file"

    @parameters_of("AzureFileDatastore")
    def __init__(self, *, name: str, account_name: str, file_share_name: str,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 endpoint: str = "core.windows.net", protocol: str = "https",
                 properties: Optional[Dict[str, str]] = None, credentials: Any = None) -> None:
        self._set_datastore(name=name, description=description, tags=tags, properties=properties,
                            credentials=credentials)
        self.account_name, self.file_share_name = account_name, file_share_name
        self.endpoint, self.protocol = endpoint, protocol


class OtherDatastore(Datastore):
    """One of tutti's own types: s3, gcs, local, nfs."""

    def __init__(self, *, name: str, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None, credentials: Any = None,
                 type: Optional[str] = None) -> None:
        self._set_datastore(name=name, description=description, tags=tags, properties=properties,
                            credentials=credentials)
        self.type = type

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "OtherDatastore":
        return cls(**known)


_DATASTORES = {made.type: made for made in
               (AzureBlobDatastore, AzureDataLakeGen2Datastore, AzureFileDatastore)}


def credentials_of(value: Any) -> Any:
    """A mapping of credentials as the class of what it has."""
    if not isinstance(value, Mapping):
        return value
    for kind in (AccountKeyConfiguration, SasTokenConfiguration, ServicePrincipalConfiguration):
        if set(value) and set(value) <= set(kind._keys):
            return kind._from_dict(value)
    return dict(value)


Datastore._types = {"credentials": credentials_of}


def datastore_of(document: Dict[str, Any]) -> Datastore:
    """The mapping of a datastore's file as the class of its type."""
    kind = _DATASTORES.get(str(document.get("type", "")).lower())
    if kind is None:
        return OtherDatastore._from_dict(document)
    return kind._from_dict({key: value for key, value in document.items() if key != "type"})
