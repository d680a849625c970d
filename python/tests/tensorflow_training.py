"""What every rank of test_tensorflow_training.py does."""
import numpy as np
import tensorflow as tf

import tutti.tensorflow as hvd
from ranks import raises


def begins():
    hvd.init()
    tf.random.set_seed(7)


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def in_eager_mode_and_traced(function):
    yield function
    yield tf.function(function, autograph=False)  # equals_one_process has it, which takes longer


def tape_means():
    """With factors, compression, groups and numbers for names the mean is the mean. Of the two
    ways to name one is traced, by turns."""
    first, second = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    unused = tf.Variable(1.0)
    for number, options in enumerate([
            {}, {"gradient_predivide_factor": 2.0}, {"compression": hvd.Compression.fp16},
            {"groups": 1}, {"groups": 5}, {"groups": [[second], [first]]}, {"groups": [[first]]}]):
        for generic in (False, True):
            def gradients():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(first) * (hvd.rank() + 1.0) + second * hvd.rank()
                tape = hvd.DistributedGradientTape(tape, **options)
                return tape.gradient(loss, [first, unused, second], use_generic_names=generic)
            eagerly, traced = in_eager_mode_and_traced(gradients)
            for run in (eagerly, traced) if number % 2 == generic else (eagerly,):
                found = run()
                close(found[0], [1.5, 1.5])
                assert found[1] is None
                close(found[2], 0.5)


def tape_of_one_source():
    x = tf.Variable(2.0)
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True), op=hvd.Sum) as tape:
        y = x * x * (hvd.rank() + 1)
    close(tape.gradient(y, x), 12)
    close(tape.gradient(y, {"x": x})["x"], 12)


def tape_of_sparse_gradients():
    table = tf.Variable(tf.zeros([4, 2]))

    def gradient(as_dense):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [hvd.rank(), 3]))
        tape = hvd.DistributedGradientTape(tape, sparse_as_dense=as_dense)
        return tape.gradient(loss, [table])[0]
    for as_dense in (False, True):
        assert isinstance(gradient(as_dense), tf.IndexedSlices) != as_dense

        def dense(as_dense=as_dense):
            return tf.convert_to_tensor(gradient(as_dense))
        for run in in_eager_mode_and_traced(dense):
            close(run(), [[0.5, 0.5], [0.5, 0.5], [0, 0], [1, 1]])


def partial_tape():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)
    own = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)
    x = tf.constant([[hvd.rank() + 1.0]])
    own(dense(x))
    sources = dense.trainable_weights + own.trainable_weights
    for scale, expected in [(True, (hvd.rank() + 1) / 2), (False, hvd.rank() + 1)]:
        def pairs():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(own(dense(x)))
            tape = hvd.PartialDistributedGradientTape(tape, local_layers=own,
                                                      scale_local_gradients=scale)
            return tape.get_local_and_global_gradients(loss, sources)
        local, shared = pairs()
        close(local[0][1], [[expected]])
        close(shared[0][1], [[1.5]])
        assert len(local) == len(shared) == 1
    with raises(ValueError, "layers"):
        hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=[3])


def legacy_optimizer():
    """Tests the optimizers of tf.compat.v1.train, in eager mode and in sessions, by the mean of the
    ranks' gradients."""
    variable = tf.Variable([4.0])
    optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0))
    optimizer.minimize(lambda: variable * (hvd.rank() + 1.0), var_list=[variable])
    close(variable, [2.5])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("v", initializer=[4.0])
        optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.MomentumOptimizer(1.0, 0.0))
        step = optimizer.minimize(variable * (hvd.rank() + 1.0))
        session.run(tf.compat.v1.global_variables_initializer())
        session.run([step])
        session.run([step])
        close(session.run(variable), [1.0])
        assert optimizer.get_slot_names() == ["momentum"] and optimizer.variables()


def legacy_optimizer_of_several_passes():
    """It steps at every second pass; the global step counts all."""
    for average, rate in [(True, 1.5), (False, 3.0)]:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            variable = tf.compat.v1.get_variable("v", initializer=[10.0])
            steps = tf.compat.v1.train.get_or_create_global_step()
            optimizer = hvd.DistributedOptimizer(
                tf.compat.v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2,
                average_aggregated_gradients=average)
            step = optimizer.minimize(variable * (hvd.rank() + 1.0), global_step=steps)
            session.run([tf.compat.v1.global_variables_initializer(),
                         tf.compat.v1.local_variables_initializer()])
            for number in range(1, 6):
                session.run(step)
                close(session.run(variable), [10 - rate * (number // 2)])
                assert session.run(steps) == number
    with raises(ValueError, "graph"):
        hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0),
                                 backward_passes_per_step=2)


def adasum_optimizer():
    """Steps that are at right angles add up; equal ones count once."""
    for passes in (1, 2):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            angles = tf.compat.v1.get_variable("angles", initializer=[1.0, 1.0])
            equal = tf.compat.v1.get_variable("equal", initializer=[1.0])
            direction = [1.0, 0.0] if hvd.rank() == 0 else [0.0, 1.0]
            optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.25),
                                                 op=hvd.Adasum, backward_passes_per_step=passes)
            step = optimizer.minimize(tf.reduce_sum(angles * direction) + equal)
            session.run(tf.compat.v1.global_variables_initializer())
            for _ in range(2):
                session.run(step)
            close(session.run(angles), [0.5, 0.5])
            close(session.run(equal), [0.5])
    with raises(ValueError, "Adasum"):
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(), op=hvd.Adasum)
    with raises(ValueError, "Average only"):
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(), op=hvd.Sum,
                                 gradient_predivide_factor=2.0)


def batch_norm():
    """Two ranks with half a batch each are as one with all of it, in values and gradients."""
    whole = np.random.RandomState(3).rand(8, 3).astype(np.float32)
    half = whole[4 * hvd.rank():4 * hvd.rank() + 4]
    plain, synchronous = tf.keras.layers.BatchNormalization(), hvd.SyncBatchNormalization()

    def normalized(layer, values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            outputs = layer(values, training=True)
            loss = tf.reduce_sum(outputs ** 3)
        return outputs, tape.gradient(loss, values)
    expected, expected_gradient = normalized(plain, tf.constant(whole))
    mine = slice(4 * hvd.rank(), 4 * hvd.rank() + 4)
    for run in in_eager_mode_and_traced(normalized):
        outputs, gradient = run(synchronous, tf.constant(half))
        np.testing.assert_allclose(outputs, expected[mine], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradient, expected_gradient[mine], rtol=1e-3, atol=1e-4)
    with raises(ValueError, "fused"):
        hvd.SyncBatchNormalization(fused=True)


def equals_one_process():
    """Ten steps of a small network on two ranks' halves are those of one process on the whole."""
    generator = np.random.RandomState(5)
    inputs = generator.rand(8, 4).astype(np.float32)
    targets = generator.rand(8, 1).astype(np.float32)
    start = [generator.rand(4, 3).astype(np.float32), generator.rand(3, 1).astype(np.float32)]

    def trained(x, y, distribute):
        weights = [tf.Variable(value) for value in start]

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.tanh(x @ weights[0]) @ weights[1] - y) ** 2)
            gradients = distribute(tape).gradient(loss, weights)
            for weight, gradient in zip(weights, gradients):
                weight.assign_sub(0.1 * gradient)
        for _ in range(10):
            step()
        return weights
    mine = slice(4 * hvd.rank(), 4 * hvd.rank() + 4)
    alone = trained(inputs, targets, lambda tape: tape)
    together = trained(inputs[mine], targets[mine], hvd.DistributedGradientTape)
    for one, other in zip(alone, together):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
