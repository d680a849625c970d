"""Environment: what a run finds installed, written as tutti.ml's."""
from __future__ import annotations

import copy
import os
import pathlib
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from tutti.core._parameters import Attributes, Refusing, Section, parameters_of, refusals_of
from tutti.core.conda_dependencies import CondaDependencies
from tutti.core.exceptions import (
    ResourceNotFoundError, RunConfigurationException, UnsupportedOperationError, UserErrorException)
from tutti.ml import entities

if TYPE_CHECKING:
    from tutti.core.workspace import Workspace

Path = Union[str, "os.PathLike[str]"]
__getattr__ = refusals_of(__name__)

# The images that scripts name by these, of which docs/environments.md tells what they become.
DEFAULT_CPU_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
DEFAULT_GPU_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04"
# Before a curated name: the image that it stands for, to which packages may be added.
_CURATED = "mcr.microsoft.com/azureml/curated/"


class PythonSection(Attributes):
    """The Python of an environment: its packages, or (user_managed_dependencies) what is there."""

    def __init__(self) -> None:
        self.conda_dependencies: Optional[CondaDependencies] = None
        self.user_managed_dependencies = False
        self.interpreter_path = "python"
        self.base_conda_environment: Optional[str] = None

    @property
    def conda_dependencies_file(self) -> Optional[str]:
        """The file that conda_dependencies was read from by setting this."""
        return self.__dict__.get("_file")

    @conda_dependencies_file.setter
    def conda_dependencies_file(self, value: Optional[str]) -> None:
        self.__dict__["_file"] = value
        self.conda_dependencies = None if value is None else CondaDependencies(value)


class DockerBuildContext(Refusing):
    """A folder with a Dockerfile."""

    def __init__(self, location_type: Optional[str] = None, location: Optional[str] = None,
                 dockerfile_path: str = "Dockerfile") -> None:
        self.location_type, self.location = location_type, location
        self.dockerfile_path = dockerfile_path

    @staticmethod
    @parameters_of("DockerBuildContext.from_local_directory")
    def from_local_directory(workspace: Any, path: Path, dockerfile_path: str = "Dockerfile"
                             ) -> "DockerBuildContext":
        """Of a folder, which is read where it lies, on the machine of the service."""
        return DockerBuildContext("local", os.path.abspath(path), dockerfile_path)


class DockerSection(Attributes):
    """The image of an environment."""

    def __init__(self) -> None:
        self.base_image: Optional[str] = None
        self.base_dockerfile: Optional[str] = None
        self.build_context: Optional[DockerBuildContext] = None
        self.base_image_registry: Any = Section("DockerSection", "base_image_registry")
        self.enabled: Optional[bool] = None
        self.arguments: List[str] = []
        self.shm_size: Optional[str] = None
        self.platform: Any = None
        self.gpu_support: Optional[bool] = None
        self.shared_volumes: Optional[bool] = None


class Environment(Attributes, Refusing):
    """What a run finds installed.

        environment = Environment("mine")
        environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["torch"])

    Without packages and without an image it is what the machine has, as with
    python.user_managed_dependencies.

    :param name: how messages call it, and runs once it was registered
    """

    @parameters_of("Environment")
    def __init__(self, name: str, **kwargs: Any) -> None:
        for key in kwargs:
            raise TypeError(f"Environment(): there is no parameter {key}")
        self.name = name
        self.version: Optional[str] = None
        self.python, self.docker = PythonSection(), DockerSection()
        self.environment_variables: Dict[str, str] = {}
        self.inferencing_stack_version: Optional[str] = None
        self.spark: Any = Section("Environment", "spark")
        self.databricks: Any = Section("Environment", "databricks")
        self.r: Any = Section("Environment", "r")
        # What the service knows by this name; None: it is written out.
        self._reference: Optional[str] = None
        self._as_found: Any = None  # what was written of it then, by which a change is seen

    # Where it comes from.

    @staticmethod
    @parameters_of("Environment.get")
    def get(workspace: "Workspace", name: str, version: Optional[str] = None,
            label: Optional[str] = None) -> "Environment":
        """One that was registered, or a curated one; without version or label the newest. A curated one
        (AzureML-…) and, on another machine than the service's, any is a name, of which the service
        tells once a run has it."""
        made = Environment(name)
        try:
            found = workspace._client.environments.get(name, version, label)
        except (ResourceNotFoundError, UnsupportedOperationError) as error:
            if isinstance(error, ResourceNotFoundError) and not name.startswith("AzureML-"):
                raise
            made.version = version
            if name.startswith("AzureML-"):
                made._read_curated(version)
            made._is_known_as(
                f"azureml:{name}:{version}" if version else f"azureml:{name}@{label or 'latest'}")
            return made
        made._read(found)
        made.version = found.version
        if made._written_out() == "host":  # a line of the service's table
            made._read_curated(version)
        made._is_known_as(found.id)
        return made

    def _is_known_as(self, reference: Optional[str]) -> None:
        """Runs take it by that name, unless it is changed."""
        self._reference, self._as_found = reference, self._written_out()

    def _read(self, found: entities.Environment) -> None:
        """What it has, for those who look; the run takes it by its name."""
        self.docker.base_image = found.image
        if isinstance(found.conda_file, dict):
            self.python.conda_dependencies = CondaDependencies()
            self.python.conda_dependencies._document = {
                "dependencies": [], **copy.deepcopy(found.conda_file)}

    def _read_curated(self, version: Optional[str]) -> None:
        """The image of a curated name, so that a copy of it may be changed."""
        name = self.name[len("AzureML-"):] if self.name.startswith("AzureML-") else self.name
        self.docker.base_image = f"{_CURATED}{name.lower()}:{version or 'latest'}"
        self.python.conda_dependencies = CondaDependencies()

    @staticmethod
    @parameters_of("Environment.list")
    def list(workspace: "Workspace") -> Dict[str, "Environment"]:
        """All that have a name, the newest version of each."""
        made = {}
        for found in workspace._client.environments.list():
            one = made[str(found.name)] = Environment(str(found.name))
            one.version = found.version
            one._is_known_as(found.id)
        return made

    @staticmethod
    @parameters_of("Environment.from_conda_specification")
    def from_conda_specification(name: str, file_path: Path) -> "Environment":
        """Of a conda file."""
        made = Environment(name)
        made.python.conda_dependencies = CondaDependencies(file_path)
        return made

    @staticmethod
    @parameters_of("Environment.from_pip_requirements")
    def from_pip_requirements(name: str, file_path: Path, pip_version: Optional[str] = None
                              ) -> "Environment":
        """Of a list of requirements. Other files that it names are not read: such a line is an error."""
        made = Environment(name)
        packages = made.python.conda_dependencies = CondaDependencies()
        for line in _requirements(pathlib.Path(file_path)):
            packages._pip().append(line)
        return made

    @staticmethod
    @parameters_of("Environment.from_docker_image")
    def from_docker_image(name: str, image: str, container_registry: Any = None,
                          conda_specification: Optional[Path] = None,
                          pip_requirements: Optional[Path] = None) -> "Environment":
        """Of an image, with the packages of a conda file or of requirements added to it."""
        if conda_specification is not None and pip_requirements is not None:
            raise UserErrorException("give conda_specification or pip_requirements, not both")
        if conda_specification is not None:
            made = Environment.from_conda_specification(name, conda_specification)
        elif pip_requirements is not None:
            made = Environment.from_pip_requirements(name, pip_requirements)
        else:
            made = Environment(name)
            made.python.user_managed_dependencies = True
        made.docker.base_image = image
        return made

    @staticmethod
    @parameters_of("Environment.from_dockerfile")
    def from_dockerfile(name: str, dockerfile: Path, conda_specification: Optional[Path] = None,
                        pip_requirements: Optional[Path] = None) -> "Environment":
        """Of a Dockerfile, which is read where it lies, with its folder."""
        path = pathlib.Path(dockerfile)
        if not path.is_file():
            raise UserErrorException(f"{path} does not exist")
        context = DockerBuildContext("local", str(path.absolute().parent), path.name)
        return Environment.from_docker_build_context(name, context)

    @staticmethod
    @parameters_of("Environment.from_docker_build_context")
    def from_docker_build_context(name: str, docker_build_context: DockerBuildContext
                                  ) -> "Environment":
        """Of a folder with a Dockerfile."""
        made = Environment(name)
        made.python.user_managed_dependencies = True
        made.docker.build_context = docker_build_context
        return made

    # What becomes of it.

    @parameters_of("Environment.register")
    def register(self, workspace: "Workspace") -> "Environment":
        """Gives it its name, and the next version."""
        written = self._written()
        if written == "host":
            raise UserErrorException(
                f"environment {self.name} has no packages and no image: there is nothing to register")
        if isinstance(written, str):
            return self
        if self.environment_variables:
            if not isinstance(written.conda_file, dict):
                raise UserErrorException(
                    "environment_variables are kept with a name only where it has packages: give them "
                    "to the run, or in the image")
            written.conda_file["variables"] = {**written.conda_file.get("variables", {}),
                                               **self.environment_variables}
        found = workspace._client.environments.create_or_update(written)
        made = self.clone(self.name)
        made.version = found.version
        made._is_known_as(found.id)
        return made

    @parameters_of("Environment.clone")
    def clone(self, new_name: str) -> "Environment":
        """A copy under another name, which may be changed and is not registered."""
        made = copy.deepcopy(self)
        made.name, made.version, made._reference = new_name, None, None
        if self._reference and self._as_found == "host":
            raise UserErrorException(
                f"what environment {self.name} has is known to the service alone: it cannot be cloned here")
        return made

    @property
    def _runs_on_host(self) -> bool:
        return bool(self._written() == "host")

    def _written(self) -> Any:
        """What a run's file has of it: a name, or an Environment of tutti.ml."""
        written = self._written_out()
        if self._reference is None:
            return written
        if written == self._as_found:
            return self._reference
        if self._as_found == "host":
            raise UserErrorException(
                f"what environment {self.name} has is known to the service alone: it cannot be changed here")
        return written

    def _written_out(self) -> Any:
        image, context = self.docker.base_image, self.docker.build_context
        packages = None if self.python.user_managed_dependencies else self.python.conda_dependencies
        if self.docker.base_dockerfile is not None:
            path = pathlib.Path(self.docker.base_dockerfile)
            if "\n" in str(self.docker.base_dockerfile) or not path.is_file():
                raise RunConfigurationException(
                    "docker.base_dockerfile: name a file: a text is not sent; from_dockerfile and "
                    "from_docker_build_context take files")
            context = DockerBuildContext("local", str(path.absolute().parent), path.name)
        if context is not None:
            if image is not None or packages is not None:
                raise RunConfigurationException(
                    f"environment {self.name}: a Dockerfile stands alone: what it installs is said there")
            return entities.Environment(name=self.name, build=entities.BuildContext(
                path=context.location, dockerfile_path=context.dockerfile_path))
        document = packages.as_dict() if packages is not None else {}
        if not any(document.values()):
            document = {}
        if image is None and not document:
            return "host"
        return entities.Environment(name=self.name, image=image, conda_file=document or None)

    def __repr__(self) -> str:
        return f"Environment(name={self.name!r}, version={self.version!r})"


def _requirements(path: pathlib.Path) -> List[str]:
    if not path.is_file():
        raise UserErrorException(f"{path} does not exist")
    lines = []
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        line = line.split(" #")[0].strip()
        if line.startswith(("-r", "-c", "--requirement", "--constraint", "-e", "--editable", ".", "/")):
            raise UserErrorException(f"{path}: {line}: files that requirements name are not sent")
        if line and not line.startswith("#"):
            lines.append(line)
    return lines


__all__ = ["CondaDependencies", "DockerBuildContext", "DockerSection", "Environment",
           "PythonSection"]
