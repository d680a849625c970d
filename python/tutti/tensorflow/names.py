"""Names of collectives: by them the ranks know which of their tensors belong together.

In a graph a name comes from the input's, as with Horovod: ranks that build the same graph get the
same. Graphs within graphs (branches of a tf.cond, functions called by functions) are numbered by
the order in which they come to a collective, since their tensors are called alike. Eager
collectives run one at a time, in the order of the program: they share a name, or a few where there
are several threads.
"""
import contextlib
import itertools
import re
import threading

import tensorflow as tf


def normalized(name):
    """As a name of an op may be."""
    return re.sub("[^a-zA-Z0-9_]", "_", name)


def _path(graph):
    """Tells graphs within graphs apart. A function's own graph has none: it may be traced more
    often on one rank than on another."""
    outer = getattr(graph, "outer_graph", None)
    if outer is None or getattr(outer, "outer_graph", None) is None:
        return ""
    number = getattr(graph, "_tutti_number", None)
    if number is None:
        number = graph._tutti_number = getattr(outer, "_tutti_children", 0)
        outer._tutti_children = number + 1
    return f"{_path(outer)}{number}/"


def in_graph(base, ignore_name_scope=False):
    """Returns the name of an op that is added to the default graph now. Called once for an op: with
    the scopes it stands in a name is given once."""
    if ignore_name_scope:
        return base
    graph = tf.compat.v1.get_default_graph()
    return _path(graph) + graph.unique_name(base)


class _Slots:
    """The lowest numbers that are not in use."""

    def __init__(self):
        self._lock = threading.Lock()
        self._used = {}

    @contextlib.contextmanager
    def one(self, key):
        with self._lock:
            used = self._used.setdefault(key, set())
            slot = next(number for number in itertools.count() if number not in used)
            used.add(slot)
        try:
            yield slot
        finally:
            with self._lock:
                used.discard(slot)


_slots = _Slots()


@contextlib.contextmanager
def eager(kind, process_set):
    """Gives the name of an eager collective that was not given one, while it runs."""
    with _slots.one((kind, process_set)) as slot:
        yield f"{kind}.{slot}"
