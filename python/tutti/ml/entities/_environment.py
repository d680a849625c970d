"""Environments: what a job finds installed."""
from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity


class BuildContext(Entity):
    """A folder with a Dockerfile.

    :keyword path: the folder
    :keyword dockerfile_path: the file within it; Dockerfile without it
    """
    _keys = ("path", "dockerfile_path")

    @parameters_of("BuildContext")
    def __init__(self, *, dockerfile_path: Optional[str] = None,
                 path: Union[str, "os.PathLike[str]", None] = None) -> None:
        self.dockerfile_path, self.path = dockerfile_path, path


class Environment(Entity):
    """What a job finds installed: packages of a conda file, an image, or both.

    :keyword name: how messages call it, and jobs once it was created
    :keyword version: its version; without it the next whole number
    :keyword image: an image
    :keyword build: a folder with a Dockerfile
    :keyword conda_file: a conda file, or what stands in one; also requirements as .txt
    :keyword description: for readers
    :keyword tags: for readers
    """
    _keys = ("name", "version", "description", "tags", "image", "build", "conda_file", "os_type")
    _types = {"build": BuildContext}
    _created = False  # by the operations: jobs take it by its name
    _numbered: Optional[Dict[str, Any]] = None  # what was kept when the service gave it its version

    @parameters_of("Environment")
    def __init__(self, *, name: Optional[str] = None, version: Optional[str] = None,
                 description: Optional[str] = None, image: Optional[str] = None,
                 build: Optional[BuildContext] = None,
                 conda_file: Union[str, "os.PathLike[str]", Dict[str, Any], None] = None,
                 tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None, datastore: Optional[str] = None,
                 os_type: Optional[str] = None,
                 inference_config: Optional[Dict[str, Any]] = None) -> None:
        self.name, self.description = name, description
        self.version = None if version is None else str(version)
        self.image, self.build, self.conda_file = image, build, conda_file
        self.tags, self.properties = tags or {}, properties or {}
        self.datastore, self.os_type, self.inference_config = datastore, os_type, inference_config

    @property
    def id(self) -> Optional[str]:
        """How jobs name it, once it was created."""
        return f"azureml:{self.name}:{self.version}" if self._created else None

    def _in_document(self) -> Any:
        return self.id or self._to_dict()


def environment_of(value: Any) -> Any:
    """An environment of a document: a mapping becomes an Environment, a name stays."""
    return Environment._from_dict(value) if isinstance(value, Mapping) else value
