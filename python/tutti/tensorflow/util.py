"""What tutti.tensorflow asks TensorFlow."""
import os

import tensorflow as tf


# Autograph leaves such functions alone, inside a tf.function: they have nothing for it to convert,
# and converting takes a long time.
as_it_is = tf.autograph.experimental.do_not_convert


def _executing_eagerly():
    return tf.executing_eagerly()


def _make_subgraph(function):
    return tf.function(function)


def _cache(function):
    """The function, called once for the same (hashable) arguments in eager mode and once in
    graphs."""
    results = {}

    def cached(*arguments):
        key = (arguments, tf.executing_eagerly())
        if key not in results:
            results[key] = function(*arguments)
        return results[key]
    return cached


def vars_to_refs(vars):
    """What stands for a variable as a key; of a list (of lists), a tuple (of tuples) of those."""
    return tuple(map(vars_to_refs, vars)) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs):
    """The variables of what vars_to_refs gave, in lists again."""
    return list(map(refs_to_vars, refs)) if isinstance(refs, tuple) else refs.deref()


def is_elastic():
    """Whether ranks may come and go while the program runs."""
    return os.environ.get("HOROVOD_ELASTIC", "0") not in ("",
                                                          "0") or os.environ.get("TUTTI_ELASTIC",
                                                                                 "0") == "1"


def identity_of(variable):
    """What tells a variable, also one of Keras 3, from others; usable as a key."""
    inner = getattr(variable, "_value", None)  # Keras 3 wraps TensorFlow's variables
    variable = inner if isinstance(inner, tf.Variable) else variable
    return variable.ref() if hasattr(variable, "ref") else id(variable)


def gpu_available(_framework="tensorflow"):
    """Whether TensorFlow sees a GPU."""
    return bool(tf.config.list_physical_devices("GPU"))
