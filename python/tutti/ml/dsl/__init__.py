"""Pipelines as functions.

    @dsl.pipeline(default_compute="cpu-cluster")
    def train_and_score(data, rate=0.1):
        trained = train(data=data, rate=rate)             # a step; its name is that of the variable
        scored = score(model=trained.outputs.model)
        return {"scores": scored.outputs.scores}          # what the pipeline itself puts out

    ml_client.jobs.create_or_update(train_and_score(Input(path="azureml:train:1")))
"""
from __future__ import annotations

import functools
import inspect
import re
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from tutti.ml._parameters import of_the_user, parameters_of
from tutti.ml.entities._component import PipelineComponent
from tutti.ml.entities._entity import Entity
from tutti.ml.entities._io import Input, Output
from tutti.ml.entities._node import (
    Builder, Node, NodeOutput, PipelineInput, did_you_mean, plain_copy, type_of)
from tutti.ml.entities._pipeline import Pipeline, PipelineJob, PipelineJobSettings
from tutti.ml.exceptions import (
    MissingPositionalArgsError, MultipleValueError, TooManyPositionalArgsError,
    UnexpectedKeywordError, UnsupportedParameterKindError, UserErrorException,
    ValidationException)

__all__ = ["pipeline"]

_VALUES = {str: "string", int: "integer", float: "number", bool: "boolean",
           "str": "string", "int": "integer", "float": "number", "bool": "boolean"}


class _Definition:
    """A function of dsl.pipeline, and what its decorator was given."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.function, self.options = function, options
        self.parameters = inspect.signature(function).parameters
        for name, parameter in self.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise UnsupportedParameterKindError(
                    f"{function.__name__}: dsl.pipeline takes no *args or **kwargs, as {name} is")
        self.by_value = set(options.get("non_pipeline_inputs") or [])
        for name in sorted(self.by_value - set(self.parameters)):
            raise UserErrorException(f"{function.__name__}: non_pipeline_inputs names {name}, which "
                                     "is none of its parameters")

    def arguments(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Dict[str, Any]:
        """The values of all parameters."""
        names, what = list(self.parameters), self.function.__name__
        if len(args) > len(names):
            raise TooManyPositionalArgsError(
                f"{what}() takes {len(names)} parameters, but was given {len(args)}")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in given:
                raise MultipleValueError(f'{what}() was given "{name}" twice')
            if name not in names:
                raise UnexpectedKeywordError(
                    f'{what}() has no parameter "{name}"{did_you_mean(name, names)}')
            given[name] = value
        missing = [name for name in names
                   if name not in given and self.parameters[name].default is inspect.Parameter.empty
                   and not self._is_optional(name)]
        if missing:
            raise MissingPositionalArgsError(f"{what}() is not given {', '.join(missing)}")
        for name in names:
            if name not in given:
                default = self.parameters[name].default
                given[name] = None if default is inspect.Parameter.empty else default
        return {name: given[name] for name in names}

    def annotation(self, name: str) -> Optional[Input]:
        """What the function says of a parameter, if it does."""
        written = self.parameters[name].annotation
        if isinstance(written, str):  # from __future__ import annotations
            try:
                written = eval(written, getattr(self.function, "__globals__", {}))  # noqa: S307
            except Exception:  # noqa: BLE001 (a name of typing's that is not there)
                return None
        if isinstance(written, Input):
            return written
        if isinstance(written, type) and issubclass(written, Input):
            return Input()
        known = isinstance(written, (type, str)) and written in _VALUES
        return Input(type=_VALUES[written]) if known else None

    def _is_optional(self, name: str) -> bool:
        annotation = self.annotation(name)
        return annotation is not None and bool(annotation.optional)

    def build(self, values: Mapping[str, Any]) -> "_Built":
        """Calls the function once."""
        inputs: Dict[str, PipelineInput] = {}
        handed: Dict[str, Any] = {}
        for name, value in values.items():
            is_input = name not in self.by_value and (value is not None or self._is_optional(name))
            if is_input:
                inputs[name] = PipelineInput(name, value, self.annotation(name))
            handed[name] = inputs[name] if is_input else value
        builder = Builder()
        returned, variables = builder.run(lambda: _called(self.function, handed))
        return _Built(self, builder.nodes, variables, inputs, returned)


class _Built:
    """What a call of the function has made."""

    def __init__(self, definition: _Definition, nodes: List[Node], variables: Mapping[str, Any],
                 inputs: Dict[str, PipelineInput], returned: Any) -> None:
        self.definition, self.inputs = definition, inputs
        self.jobs = _named(nodes, variables)
        self.outputs = self._outputs(returned)

    def _outputs(self, returned: Any) -> Dict[str, Output]:
        what = self.definition.function.__name__
        if returned is None:
            return {}
        if isinstance(returned, Node):
            returned = returned.outputs
        if not isinstance(returned, Mapping):
            raise UserErrorException(
                f"{what}() must return outputs of its steps by name, as {{'model': train.outputs.model}}")
        outputs = {}
        for name, output in returned.items():
            if not isinstance(output, NodeOutput):
                raise UserErrorException(f'{what}(): "{name}", which it returns, is no output of a step')
            if not any(output.node is step for step in self.jobs.values()):
                raise UserErrorException(f'{what}(): "{name}" is an output of a step that is not its own')
            bound_to = output.node.outputs[output.port].bound_to
            if bound_to is not None:
                raise UserErrorException(
                    f'{what}(): the output "{output.port}" of step "{output.node._step_name}" is '
                    f'returned as "{bound_to}" and as "{name}"; one of them is enough')
            declared = output.data if isinstance(output.data, Output) else output.node._output_type(output.port)
            outputs[name] = plain_copy(declared)
            output.node.outputs[output.port].bound_to = name
        return outputs

    def component(self) -> PipelineComponent:
        """The pipeline as a component."""
        definitions = {}
        for name, given in self.inputs.items():
            made = Input(type=given.type)
            if given.definition is not None:
                made = Input._from_dict(given.definition._to_dict())
                made.path = None
            default = self.definition.parameters[name].default
            if made.is_primitive and default is not inspect.Parameter.empty and default is not None:
                made.default = default
            definitions[name] = made
        options = self.definition.options
        return PipelineComponent(
            name=options["name"] or self.definition.function.__name__, version=options["version"],
            display_name=options["display_name"],
            description=options["description"] or _described(self.definition.function),
            tags=_tags(options["tags"]), inputs=definitions, outputs=self.outputs, jobs=self.jobs)


def _described(function: Callable[..., Any]) -> Optional[str]:
    text = inspect.getdoc(function)
    return text.splitlines()[0] if text else None


def _tags(tags: Union[Dict[str, str], str, None]) -> Dict[str, str]:
    if isinstance(tags, str):
        import json
        return dict(json.loads(tags))
    return dict(tags or {})


def _called(function: Callable[..., Any], handed: Mapping[str, Any]) -> Tuple[Any, Dict[str, Any]]:
    """Calls the function; what it returns, and its variables at the end."""
    variables: Dict[str, Any] = {}
    code = getattr(inspect.unwrap(function), "__code__", None)  # a partial has none, and no names
    before = sys.getprofile()

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code is code:
            variables.clear()
            variables.update(frame.f_locals)
        if callable(before):
            before(frame, event, argument)  # type: ignore[arg-type]

    sys.setprofile(watch)
    try:
        with of_the_user():
            returned = function(**handed)
    finally:
        if before is None or callable(before):
            sys.setprofile(before)
        else:  # cProfile's, which is no function; it does not see this call
            sys.setprofile(None)
            before.enable()
    return returned, variables


def _named(nodes: List[Node], variables: Mapping[str, Any]) -> Dict[str, Node]:
    """The steps by name: their own, else the variable's, else their component's."""
    of_variable = {id(value): name for name, value in variables.items() if isinstance(value, Node)}
    named: Dict[str, Node] = {}
    for node in nodes:
        wished = node.name if node._named else of_variable.get(id(node))  # type: ignore[attr-defined]
        if not wished:
            component = getattr(node, "component", None)
            wished = getattr(component, "name", None) or getattr(node, "name", None) or \
                getattr(node, "type", "step")
        base = name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(wished))
        count = 0
        while name in named:
            count += 1
            name = f"{base}_{count}"
        node._step_name = name
        named[name] = node
    _check_bindings(named)
    return named


def _check_bindings(named: Mapping[str, Node]) -> None:
    for name, node in named.items():
        for key, value in node.inputs.items():
            path = value.path if isinstance(value, Input) else None
            bound = path if isinstance(path, (NodeOutput, Node)) else value
            owner = bound.node if isinstance(bound, NodeOutput) else bound
            if isinstance(owner, Node) and not any(owner is step for step in named.values()):
                raise ValidationException(
                    f'step "{name}" takes input "{key}" from what is no step of the pipeline: call '
                    "the component, or what command() has returned, within the pipeline's function")


def _settings(options: Mapping[str, Any], named: Mapping[str, Node]) -> PipelineJobSettings:
    made = PipelineJobSettings(
        default_datastore=options.get("default_datastore"),
        default_compute=options.get("default_compute") or options.get("default_compute_target"),
        continue_on_step_failure=options.get("continue_on_step_failure"),
        force_rerun=options.get("force_rerun"), on_init=options.get("on_init"),
        on_finalize=options.get("on_finalize"))
    return made


def _made(definition: _Definition, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    values = definition.arguments(args, kwargs)
    nested = Builder.current() is not None
    built = definition.build(values)
    options = definition.options
    if nested:
        given = {name: value.value for name, value in built.inputs.items() if value.value is not None}
        step = Pipeline(component=built.component(), inputs=given, compute=options.get("compute"))
        step.settings = _settings(options, built.jobs)
        Builder.add(step)
        return step
    inputs = {}
    for name, given_input in built.inputs.items():
        value = given_input.value
        annotation = given_input.definition
        if value is None and annotation is not None:
            value = Input(type=annotation.type, optional=True)
        elif isinstance(value, Input) and annotation is not None and value.mode is None:
            value = Input._from_dict({**value._to_dict(), **(
                {"mode": annotation.mode} if annotation.mode else {})})
        inputs[name] = value
    return PipelineJob(
        jobs=built.jobs, inputs=inputs, outputs=built.outputs,
        display_name=options["display_name"] or options["name"] or definition.function.__name__,
        description=options["description"] or _described(definition.function),
        experiment_name=options["experiment_name"], tags=_tags(options["tags"]),
        compute=options.get("compute"), settings=_settings(options, built.jobs))


@parameters_of("dsl.pipeline")
def pipeline(func: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None,
             version: Optional[str] = None, display_name: Optional[str] = None,
             description: Optional[str] = None, experiment_name: Optional[str] = None,
             tags: Union[Dict[str, str], str, None] = None, compute: Optional[str] = None,
             default_compute: Optional[str] = None, default_compute_target: Optional[str] = None,
             default_datastore: Optional[str] = None,
             continue_on_step_failure: Optional[bool] = None, force_rerun: Optional[bool] = None,
             on_init: Optional[str] = None, on_finalize: Optional[str] = None,
             non_pipeline_inputs: Optional[List[str]] = None,
             get_component: bool = False) -> Any:
    """A decorator: the function, called, is a pipeline of the steps that it makes. Called within
    another such function it is a step of that one.

    :keyword name: the pipeline's display name, and its component's
    :keyword compute: of steps that name none, as default_compute
    :keyword non_pipeline_inputs: parameters that the function gets as they are, such as a count of
        steps to make; all others it sees as inputs of the pipeline
    """
    options = {"name": name, "version": version, "display_name": display_name,
               "description": description, "experiment_name": experiment_name, "tags": tags,
               "compute": compute, "default_compute": default_compute,
               "default_compute_target": default_compute_target,
               "default_datastore": default_datastore,
               "continue_on_step_failure": continue_on_step_failure, "force_rerun": force_rerun,
               "on_init": on_init, "on_finalize": on_finalize,
               "non_pipeline_inputs": non_pipeline_inputs}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = _Definition(function, options)

        @functools.wraps(function)
        def make(*args: Any, **kwargs: Any) -> Any:
            return _made(definition, args, kwargs)

        make._pipeline = definition  # type: ignore[attr-defined]
        return make

    return decorate if func is None else decorate(func)
