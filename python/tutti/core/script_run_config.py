"""ScriptRunConfig: a script or a command, and what it needs; written as a command job of tutti.ml."""
from __future__ import annotations

import numbers
import os
import re
from typing import Any, Dict, List, Optional, Union

from tutti.core._parameters import parameters_of, warn_once
from tutti.core.data import (
    DataPath, DatasetConsumptionConfig, FileDataset, OutputFileDatasetConfig)
from tutti.core.environment import Environment
from tutti.core.exceptions import RunConfigurationException, UserErrorException
from tutti.core.runconfig import (
    LONGEST, DistributedJobConfig, DockerConfiguration, RunConfiguration)
from tutti.ml import command as command_job
from tutti.ml.entities._command import Command

# What the shell replaces in a word; all else stays as it is written.
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def quoted(word: str) -> str:
    """A word for the shell, in which variables ($RANK) are replaced and nothing else is."""
    if _PLAIN.fullmatch(word):
        return word
    parts, end = [], 0
    for found in _VARIABLE.finditer(word):
        parts += [re.sub(r'([\\"$`])', r"\\\1", word[end:found.start()]), found.group(0)]
        end = found.end()
    return '"' + "".join(parts) + re.sub(r'([\\"$`])', r"\\\1", word[end:]) + '"'


class ScriptRunConfig:
    """What Experiment.submit takes.

        config = ScriptRunConfig("src", script="train.py", arguments=["--rate", 0.1],
                                 compute_target="local", environment=environment,
                                 distributed_job_config=PyTorchConfiguration(node_count=2))

    :param source_directory: a folder, which is sent with the run
    :param script: a file within it, which Python runs
    :param arguments: its arguments: texts, numbers, inputs (FileDataset.as_mount()) and outputs
        (OutputFileDatasetConfig); $NAME in them is the process's variable
    :param command: in place of script and arguments: a line for bash, or its words
    :param environment: what it finds installed; without it what the machine has
    :param distributed_job_config: how its processes start, and on how many nodes
    :param resume_from: a DataPath with the checkpoint; the script gets its path by --resume-from
    :param max_run_duration_seconds: after which it is ended; without it there is no limit
    :param docker_runtime_config: options of the container
    :param run_config: all of these in one, in place of them
    """
    MAX_DURATION_SECONDS_DEFAULT = LONGEST

    @parameters_of("ScriptRunConfig")
    def __init__(self, source_directory: Union[str, "os.PathLike[str]"],
                 script: Optional[str] = None, arguments: Optional[List[Any]] = None,
                 run_config: Optional[RunConfiguration] = None, compute_target: Any = None,
                 environment: Optional[Environment] = None,
                 distributed_job_config: Optional[DistributedJobConfig] = None,
                 resume_from: Optional[DataPath] = None,
                 max_run_duration_seconds: int = LONGEST,
                 command: Union[str, List[Any], None] = None,
                 docker_runtime_config: Optional[DockerConfiguration] = None) -> None:
        self.source_directory, self.script, self.command = source_directory, script, command
        self.arguments = list(arguments or [])
        if run_config is not None:
            if any((compute_target, environment, distributed_job_config, docker_runtime_config,
                    max_run_duration_seconds != LONGEST)):
                warn_once("ScriptRunConfig: of run_config and compute_target, environment, "
                          "distributed_job_config, max_run_duration_seconds and docker_runtime_config "
                          "run_config counts")
            self.run_config = run_config
            self.script = script or run_config.script
            self.arguments = self.arguments or list(run_config.arguments or [])
            self.command = command or run_config.command
        else:
            self.run_config = RunConfiguration()
            self._set(compute_target, environment, distributed_job_config, docker_runtime_config)
            if max_run_duration_seconds != LONGEST:
                self.run_config.max_run_duration_seconds = max_run_duration_seconds
        if resume_from is not None:
            if not isinstance(resume_from, DataPath):
                raise UserErrorException(
                    f"resume_from is a {type(resume_from).__name__}: it must be a DataPath")
            if self.command:
                raise RunConfigurationException(
                    "resume_from is an argument of a script: in a command name its path yourself, by "
                    "Datastore.path(...).as_mount()")
            self.arguments += ["--resume-from", resume_from._consumed("resume_from")]

    def _set(self, compute_target: Any, environment: Optional[Environment],
             distributed_job_config: Optional[DistributedJobConfig],
             docker_runtime_config: Optional[DockerConfiguration]) -> None:
        if compute_target is not None:
            self.run_config.target = compute_target
        if environment is not None:
            self.run_config.environment = environment
        if distributed_job_config is not None:
            self.run_config._set_distribution(distributed_job_config)
        if docker_runtime_config is not None:
            self.run_config.docker = docker_runtime_config

    def _job(self, more: str = "") -> Command:
        """The job that is submitted; `more` is added to its command."""
        config, values = self.run_config, _Values()
        environment = config.environment
        job = command_job(
            command=self._line(values) + more, code=self.source_directory,
            environment=environment._written(),
            environment_variables={**environment.environment_variables,
                                   **config.environment_variables},
            inputs=values.inputs, outputs=values.outputs,
            compute=getattr(config.target, "name", config.target),
            distribution=config._distribution(), instance_count=config.node_count,
            timeout=config.max_run_duration_seconds,
            docker_args=list(config.docker.arguments) or list(environment.docker.arguments) or None,
            shm_size=config.docker.shm_size or environment.docker.shm_size)
        return job

    def _line(self, values: "_Values") -> str:
        if self.command:
            if self.script or self.arguments:
                raise RunConfigurationException("give script and arguments, or command: not both")
            words = [self.command] if isinstance(self.command, str) else self.command
            line = " ".join(values.text_of(word) for word in words)
        elif self.script:
            line = " ".join([self._interpreter(), quoted(self.script)] + [
                values.word_of(word) for word in self.arguments])
        else:
            raise RunConfigurationException("ScriptRunConfig: give a script, or a command")
        for name, value in self.run_config.data.items():
            values.add_input(name, value)
        for name, value in self.run_config.output_data.items():
            values.add_output(name, value)
        return line

    def _interpreter(self) -> str:
        environment = self.run_config.environment
        path = environment.python.interpreter_path
        if path != "python":
            if environment.python.user_managed_dependencies:
                return quoted(path)
            warn_once(f"interpreter_path {path} has no effect: the environment's own Python has its "
                      "packages; with user_managed_dependencies another one is run")
        # A plain Debian has no python.
        return "python3" if environment._runs_on_host else "python"

    def __repr__(self) -> str:
        return f"ScriptRunConfig({self.source_directory!r}, {self.script or self.command!r})"


def path_of(kind: str, name: str) -> str:
    """The word for the shell that is an input's or output's path, or value, whatever is in it."""
    return f'"$AZ_BATCHAI_{kind.upper()}_{name}"'


class _Values:
    """The inputs and outputs that a line's words are, as the job names them."""

    def __init__(self) -> None:
        self.inputs: Dict[str, Any] = {}
        self.outputs: Dict[str, Any] = {}
        self._names: Dict[int, str] = {}

    def text_of(self, word: Any) -> str:
        """A word of a command, which the shell reads as it is."""
        return self._expression(word) or str(word)

    def word_of(self, word: Any) -> str:
        """An argument of a script."""
        return self._expression(word) or quoted(str(word))

    def _expression(self, word: Any) -> Optional[str]:
        if isinstance(word, FileDataset):
            raise RunConfigurationException(
                "a FileDataset is no argument: give FILES.as_mount() or FILES.as_download()")
        if isinstance(word, DatasetConsumptionConfig):
            return path_of("input", self.add_input(word.name, word))
        if isinstance(word, OutputFileDatasetConfig):
            return path_of("output", self.add_output(word.name, word))
        if not isinstance(word, (str, numbers.Number, os.PathLike)):
            raise RunConfigurationException(
                f"a {type(word).__name__} is no argument: give texts, numbers, paths, inputs and outputs")
        return None

    def _name(self, name: Optional[str], what: Any, kind: str, taken: Dict[str, Any]) -> str:
        known = self._names.get(id(what))
        if known is None:
            known = name or f"{kind}_{len(taken) + 1}"
            if known in taken:
                raise RunConfigurationException(f'two {kind}s are called "{known}"')
            self._names[id(what)] = known
        return known

    def add_input(self, name: Optional[str], value: DatasetConsumptionConfig) -> str:
        """Takes an input; its name."""
        if not isinstance(value, DatasetConsumptionConfig):
            raise RunConfigurationException(
                f"an input is a {type(value).__name__}: give FILES.as_mount() or FILES.as_download()")
        name = self._name(name, value, "input", self.inputs)
        self.inputs[name] = value._input()
        return name

    def add_output(self, name: Optional[str], value: OutputFileDatasetConfig) -> str:
        """Takes an output; its name."""
        if not isinstance(value, OutputFileDatasetConfig):
            raise RunConfigurationException(
                f"an output is a {type(value).__name__}: give an OutputFileDatasetConfig")
        name = self._name(name, value, "output", self.outputs)
        self.outputs[name] = value._output()
        return name
