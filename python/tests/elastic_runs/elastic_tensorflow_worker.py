"""A worker of test_elastic_tensorflow: as elastic_torch_worker.py, with a Keras model, a compiled
step and DistributedGradientTape.

elastic_tensorflow_worker.py STEPS RANKS
"""
import sys

import numpy as np
import tensorflow as tf

import elastic_steps
import horovod.tensorflow as hvd
from elastic_steps import SAMPLES


def data():
    generator = np.random.default_rng(5)
    return (generator.normal(size=(SAMPLES, 8)).astype(np.float32),
            generator.normal(size=(SAMPLES, 1)).astype(np.float32))


def network(seed):
    tf.keras.utils.set_random_seed(seed)
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="tanh"),
                                 tf.keras.layers.Dense(1)])
    return model, tf.keras.optimizers.SGD(0.05, momentum=0.9)


def one_step(model, optimizer, inputs, targets, distributed):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
    if distributed:
        tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


@hvd.elastic.run
def train(state, ranks):
    inputs, targets = data()
    step = tf.function(one_step)  # anew after a change: the number of ranks is in it
    elastic_steps.train(
        hvd, state, ranks,
        lambda mine: step(state.model, state.optimizer, inputs[mine], targets[mine], True))


def main():
    steps, ranks = map(int, sys.argv[1:])
    hvd.init()
    model, optimizer = network(seed=1 + hvd.rank())  # rank 0's counts
    state = hvd.elastic.TensorFlowKerasState(model, optimizer, step=0, left=steps)
    train(state, ranks)
    alone, its_optimizer = network(seed=1)
    for _ in range(state.step):
        one_step(alone, its_optimizer, *data(), False)
    for ours, theirs in zip(model.trainable_variables, alone.trainable_variables):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
    print(f"equal on rank {hvd.rank()} of {hvd.size()}", flush=True)


if __name__ == "__main__":
    main()
