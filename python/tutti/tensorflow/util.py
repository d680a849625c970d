"""What tutti.tensorflow asks TensorFlow."""
import os

import tensorflow as tf


# Autograph leaves such functions alone, inside a tf.function: they have nothing for it to convert,
# and converting takes a long time.
as_it_is = tf.autograph.experimental.do_not_convert


def _executing_eagerly():
    return tf.executing_eagerly()


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
