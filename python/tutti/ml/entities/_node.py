"""What the steps of a pipeline have in common: inputs and outputs by attribute, and bindings.

    ${{parent.inputs.NAME}}             an input of the pipeline       PipelineInput
    ${{parent.jobs.STEP.outputs.NAME}}  an output of another step      NodeOutput
    ${{parent.outputs.NAME}}            where an output of the pipeline comes from
"""
from __future__ import annotations

import copy
import difflib
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional

from tutti.ml.entities._entity import is_empty, plain
from tutti.ml.entities._io import Input, Output, literal, type_of_literal
from tutti.ml.exceptions import (
    MultipleValueError, TooManyPositionalArgsError, UnexpectedAttributeError,
    UnexpectedKeywordError, ValidationException)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ ' (did you mean "x"?)', or nothing."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f' (did you mean "{near[0]}"?)' if near else ""


class PipelineInput:
    """An input of the pipeline that is being defined: what a function of dsl.pipeline is given."""

    def __init__(self, name: str, value: Any, definition: Optional[Input] = None) -> None:
        self.name, self.value, self.definition = name, value, definition

    @property
    def type(self) -> str:
        """As its annotation says, else as its value is."""
        return self.definition.type if self.definition is not None else type_of(self.value)

    def _expression(self) -> str:
        return f"${{{{parent.inputs.{self.name}}}}}"

    def __str__(self) -> str:
        return self._expression()

    __repr__ = __str__


class NodeOutput:
    """An output of a step. `type`, `mode`, `path` and `description` may be set."""
    _OF_OUTPUT = ("type", "mode", "path", "description", "name", "version")

    def __init__(self, node: "Node", port: str, data: Any) -> None:
        object.__setattr__(self, "node", node)
        object.__setattr__(self, "port", port)
        object.__setattr__(self, "data", data)  # an Output; None: as the component says
        object.__setattr__(self, "bound_to", None)  # the pipeline's output that it is

    def __getattr__(self, name: str) -> Any:
        if name in self._OF_OUTPUT:
            declared = self.data if isinstance(self.data, Output) else self.node._output_type(self.port)
            return getattr(declared, name)
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OF_OUTPUT:
            if not isinstance(self.data, Output):
                declared = self.node._output_type(self.port)
                object.__setattr__(self, "data", Output(type=declared.type))
            setattr(self.data, name, value)
        else:
            object.__setattr__(self, name, value)

    def _expression(self) -> str:
        step = self.node._step_name
        if step is None:
            raise ValidationException(
                f'output "{self.port}" of a step is used outside of the pipeline that the step is in; '
                "a step is what a component, or what command() has returned, gives when it is called")
        return f"${{{{parent.jobs.{step}.outputs.{self.port}}}}}"

    def __str__(self) -> str:
        """The binding; of a job by itself what the output is."""
        return str(plain(self.data)) if self.node._step_name is None else self._expression()

    def __deepcopy__(self, memo: Any) -> "NodeOutput":
        return self  # it is of a step, whoever takes it

    def __repr__(self) -> str:
        return f"<output {self.port} of {self.node._step_name or type(self.node).__name__}>"


class Fields(dict):  # type: ignore[type-arg]
    """A mapping whose keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise UnexpectedAttributeError(
                f'there is no "{name}"{did_you_mean(name, self)}; there are: {", ".join(self)}'
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]


class OutputFields(Mapping):  # type: ignore[type-arg]
    """The outputs of a step, each made when it is asked for."""
    _node: "Node"
    _known: bool
    _outputs: Dict[str, NodeOutput]

    def __init__(self, node: "Node", given: Optional[Mapping[str, Any]], known: bool) -> None:
        self.__dict__["_node"] = node
        self.__dict__["_known"] = known  # whether those that are declared are all that there are
        self.__dict__["_outputs"] = {name: NodeOutput(node, name, value)
                                     for name, value in (given or {}).items()}

    def _get(self, name: str) -> NodeOutput:
        if name not in self._outputs:
            if self._known and name not in self._node._declared_outputs():
                raise UnexpectedAttributeError(
                    f'the step has no output "{name}"'
                    f"{did_you_mean(name, self)}; there are: {', '.join(self)}")
            self._outputs[name] = NodeOutput(self._node, name, None)
        return self._outputs[name]

    def __getitem__(self, name: str) -> NodeOutput:
        try:
            return self._get(name)
        except UnexpectedAttributeError as error:
            raise KeyError(str(error)) from None

    def __getattr__(self, name: str) -> NodeOutput:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._outputs[name] = NodeOutput(self._node, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys(self._outputs)
        names.update(dict.fromkeys(self._node._declared_outputs()))
        return iter(names)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _of(self, node: "Node") -> "OutputFields":
        """The same, without bindings, of a copy of the step."""
        made = OutputFields(node, None, self._known)
        for name, output in self._outputs.items():
            made[name] = plain_copy(output.data)
        return made


def plain_copy(data: Any) -> Any:
    """A copy of what an output was given."""
    return Output._from_dict(data._to_dict()) if isinstance(data, Output) else data


_OF_ITS_OWN = ("tags", "properties", "environment_variables", "resources", "limits",
               "distribution", "queue_settings")


def copy_of(job: Any) -> Any:
    """A copy of a job or step that may be changed without the other: with tags, inputs and settings
    of its own. The steps of a pipeline are the same ones."""
    made = copy.copy(job)
    for key in _OF_ITS_OWN:
        if key in made.__dict__:
            made.__dict__[key] = copy.deepcopy(made.__dict__[key])
    if "settings" in made.__dict__:  # which may name a step
        made.settings = copy.copy(made.settings)
    for key in ("inputs", "search_space"):
        if isinstance(made.__dict__.get(key), dict):
            values = made.__dict__[key]
            made.__dict__[key] = type(values)(
                {name: copy.copy(value) if isinstance(value, Input) else value
                 for name, value in values.items()})
    made._more = dict(made._more)
    return made


class Node:
    """A step of a pipeline."""
    _step_name: Optional[str] = None  # once the pipeline is defined
    _named = False  # by `node.name = …`
    inputs: Any
    outputs: Any

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "outputs" and not isinstance(value, OutputFields):
            value = OutputFields(self, value, False)
        if name == "inputs" and not isinstance(value, Fields):
            value = Fields(value or {})
        super().__setattr__(name, value)
        if name == "name":
            self._named = value is not None

    def _declared_outputs(self) -> Mapping[str, Any]:
        """The outputs that it is known to have, with what is declared of each."""
        return {}

    def _output_type(self, port: str) -> Output:
        declared = self._declared_outputs().get(port)
        return declared if isinstance(declared, Output) else Output()

    def _definitions(self) -> Mapping[str, Any]:
        """What its component says of its inputs."""
        return {}

    def _step(self) -> Dict[str, Any]:
        """It as a step of a job file."""
        raise NotImplementedError

    def __repr__(self) -> str:
        name = self._step_name or getattr(self, "name", None)
        return f"<{type(self).__name__}{' ' + name if name else ''}>"

    def _step_inputs(self) -> Dict[str, Any]:
        written = {}
        definitions = self._definitions()
        for name, value in self.inputs.items():
            document = input_in_document(value, definitions.get(name))
            if document is not None:
                written[name] = document
        return written

    def _step_outputs(self) -> Dict[str, Any]:
        written = {}
        for name, output in self.outputs._outputs.items():
            if output.bound_to is not None:
                written[name] = f"${{{{parent.outputs.{output.bound_to}}}}}"
            elif output.data is not None:
                written[name] = plain(output.data)
        return written


def type_of(value: Any) -> str:
    """What an input is that gets the value."""
    if isinstance(value, (Input, PipelineInput, NodeOutput)):
        return value.type
    if isinstance(value, Node):
        return only_output(value).type
    if hasattr(value, "_as_input"):
        return value._as_input().type
    return "uri_folder" if value is None else type_of_literal(value)


def only_output(node: Node) -> NodeOutput:
    """The output of a step that is given as an input itself."""
    names = list(node.outputs)
    if len(names) != 1:
        raise ValidationException(
            f"a step with {len(names)} outputs is given as an input: name one, as in step.outputs.x")
    return node.outputs[names[0]]


def is_binding(value: Any) -> bool:
    """Whether the value is known once the pipeline runs."""
    return isinstance(value, (PipelineInput, NodeOutput, Node))


def input_in_document(value: Any, definition: Any = None) -> Any:
    """An input as a job file has it; None: it has no value."""
    if isinstance(value, Node):
        value = only_output(value)
    if hasattr(value, "_as_input"):  # a data asset
        value = value._as_input()
    if is_binding(value):
        mode = definition.mode if isinstance(definition, Input) else None
        if mode is None:
            return value._expression()
        return {"type": definition.type, "path": value._expression(), "mode": mode}
    if isinstance(value, Input):
        if value.is_primitive and value.default is None and not value.optional:
            return None
        return value._to_dict()
    if value is None:
        return None
    if isinstance(value, Mapping):
        return plain(value)
    return literal(value)


def given_inputs(names: Iterable[str], args: Any, kwargs: Mapping[str, Any], what: str,
                 known: bool = True) -> Dict[str, Any]:
    """The arguments of a call by the names of the inputs."""
    names = list(names)
    if len(args) > len(names):
        raise TooManyPositionalArgsError(f"{what}() takes {len(names)} inputs, but was given {len(args)}")
    given = dict(zip(names, args))
    for name, value in kwargs.items():
        if name in given:
            raise MultipleValueError(f'{what}() was given input "{name}" twice')
        if known and name not in names:
            raise UnexpectedKeywordError(
                f'{what}() has no input "{name}"{did_you_mean(name, names)}; '
                f"there are: {', '.join(names) or 'none'}")
        given[name] = value
    return given


class Builder:
    """The pipeline that is being defined: steps are added as they are made."""
    _local = threading.local()

    def __init__(self) -> None:
        self.nodes: List[Node] = []

    @classmethod
    def _stack(cls) -> List["Builder"]:
        if not hasattr(cls._local, "stack"):
            cls._local.stack = []
        return cls._local.stack

    @classmethod
    def current(cls) -> Optional["Builder"]:
        """The innermost one; None outside of all functions of dsl.pipeline."""
        stack = cls._stack()
        return stack[-1] if stack else None

    @classmethod
    def add(cls, node: Node) -> None:
        """Makes the node a step of what is being defined, if anything is."""
        current = cls.current()
        if current is not None:
            current.nodes.append(node)

    @classmethod
    def remove(cls, node: Node) -> None:
        """Takes it back: it has become a part of another step."""
        current = cls.current()
        if current is not None:
            current.nodes = [other for other in current.nodes if other is not node]

    def run(self, function: Callable[[], Any]) -> Any:
        """Calls the function with this as the current one."""
        self._stack().append(self)
        try:
            return function()
        finally:
            self._stack().pop()


def without_empty(document: Dict[str, Any]) -> Dict[str, Any]:
    """Without the keys that would say nothing."""
    return {key: value for key, value in document.items() if not is_empty(value)}
