"""Each rank on a GPU of its own, in TensorFlow 2; where TensorFlow 1 was told by the configuration of a session."""
import tensorflow as tf


def hold(local_rank):
    """Has this process see the GPU of that number alone, and take of its memory what it needs. Nothing where there are no GPUs."""
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.set_visible_devices(gpus[local_rank], "GPU")
