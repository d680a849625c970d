"""What every rank of test_keras_training.py does, by Keras 3 and by Keras 2 (tf_keras)."""
import inspect
import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf

import tutti.tensorflow.keras as hvd
from ranks import raises

keras = tf.keras
IS_2 = os.environ.get("TF_USE_LEGACY_KERAS") == "1"
WITH_OP = os.environ.get("TUTTI_TENSORFLOW_OP") == "1"
CALLERS = ["tf_keras.src.engine.training", "tf_keras.src.optimizers"]  # of what tutti overrides


def begins():
    hvd.init()
    take_keras_2_as_it_is(but=() if WITH_OP or hvd.rank() == 1 else CALLERS)
    assert hasattr(keras.optimizers.Optimizer, "stateless_apply") != IS_2


def take_keras_2_as_it_is(but):
    """Autograph takes Keras 3 as it is, and would convert Keras 2, which takes a rank eight
    seconds; rank 0 of test_keras_nodes.py lets it, as far as tutti is called from there."""
    from tensorflow.python.autograph.core import config
    config.CONVERSION_RULES = (*map(config.Convert, but), config.DoNotConvert("tf_keras"),
                               *config.CONVERSION_RULES)


def data():
    """This rank's half of 32 rows."""
    generator = np.random.RandomState(1)
    inputs = generator.rand(32, 4).astype(np.float32)
    targets = inputs @ np.array([[1.0], [-2.0], [0.5], [3.0]], np.float32)
    return inputs[hvd.rank()::2], targets[hvd.rank()::2]


def model_of(optimizer, **options):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, activation="tanh"),
                              keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer=optimizer, **options)
    return model


def same_on_all_ranks(arrays):
    for array in arrays:
        everyone = np.asarray(hvd.allgather(np.asarray(array).reshape(1, -1).astype(np.float64)))
        np.testing.assert_allclose(everyone[0], everyone[1], rtol=1e-6)


def fits():
    """Ranks that began with other weights agree after the broadcast, and learn."""
    keras.utils.set_random_seed(hvd.rank())
    inputs, targets = data()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.05))
    assert type(optimizer).__name__ == "Adam"
    model = model_of(optimizer, metrics=["mae"])
    history = model.fit(inputs, targets, batch_size=4, epochs=3, shuffle=False, verbose=0,
                        callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(1),
                                   hvd.callbacks.MetricAverageCallback()])
    same_on_all_ranks(model.get_weights())
    same_on_all_ranks([history.history["loss"], history.history["mae"]])
    assert history.history["loss"][-1] < history.history["loss"][0]


def equals_one_process():
    """Steps on halves of a batch are those of one process on the whole."""
    generator = np.random.RandomState(2)
    inputs = generator.rand(8, 4).astype(np.float32)
    targets = generator.rand(8, 1).astype(np.float32)
    plain = model_of(keras.optimizers.SGD(0.1, momentum=0.9), run_eagerly=True)
    shared = model_of(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)))
    start = [generator.rand(*weight.shape) for weight in plain.get_weights()]
    mine = slice(4 * hvd.rank(), 4 * hvd.rank() + 4)
    for model, rows in ((plain, slice(None)), (shared, mine)):
        model.set_weights(start)
        model.fit(inputs[rows], targets[rows], batch_size=8, epochs=3, shuffle=False, verbose=0)
    for one, other in zip(plain.get_weights(), shared.get_weights()):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def steps_after_several_passes():
    """Weights stay until the second pass; iterations count all: in a graph, and in eager mode."""
    for average, divisor, eagerly in ((False, 1, False), (True, 2, True)):
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), backward_passes_per_step=2,
                                             average_aggregated_gradients=average)
        model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.compile(loss=lambda _, y: tf.reduce_mean(y), optimizer=optimizer,
                      run_eagerly=eagerly)
        model.set_weights([np.array([[10.0]])])
        x = np.array([[hvd.rank() + 1.0]])  # is the gradient: 1.5 in the mean
        for number in range(1, 6):
            model.train_on_batch(x, x)
            np.testing.assert_allclose(model.get_weights()[0], [[10 - 3 / divisor * (number // 2)]],
                                       rtol=1e-6)
            assert int(optimizer.iterations) == number
        assert int(optimizer._agg_helper.counter) == 1


def local_layers():
    model = model_of("sgd")
    own = model.layers[-1]
    optimizer = hvd.PartialDistributedOptimizer(keras.optimizers.SGD(1.0), local_layers=own)
    variables = model.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(model(tf.ones([1, 4]))) * (hvd.rank() + 1.0)
    plain = tape.gradient(loss, variables)
    pairs = optimizer.compute_gradients(loss, variables, tape=tape)
    np.testing.assert_allclose(pairs[-1][0], plain[-1] / 2)
    assert pairs[-1][1] is variables[-1]
    before = np.asarray(variables[-1])
    optimizer.apply_gradients(pairs)
    np.testing.assert_allclose(variables[-1], before - plain[-1] / 2, rtol=1e-6)


def sparse_gradients():
    for options in ({}, {"sparse_as_dense": True},
                    {"sparse_as_dense": True, "backward_passes_per_step": 2}):
        model = keras.Sequential([keras.layers.Embedding(6, 2)])
        model.compile(loss="mse", run_eagerly=len(options) == 1,  # what the third has in a graph
                      optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(0.1), **options))
        ids = np.array([[0, 1], [hvd.rank() + 2, 5]])
        model.train_on_batch(ids, np.zeros([2, 2, 2], np.float32))
        hvd_broadcast(model)
        model.train_on_batch(ids, np.zeros([2, 2, 2], np.float32))
        same_on_all_ranks(model.get_weights())


def hvd_broadcast(model):
    import tutti.tensorflow
    tutti.tensorflow.broadcast_variables(model.weights, 0)


def schedules():
    """The rate warms up within two epochs and falls after; logs tell it."""
    inputs, targets = data()
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            seen.append(float(np.asarray(self.model.optimizer.learning_rate)))
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01, momentum=0.0))
    model = model_of(optimizer, run_eagerly=True)
    rises = hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.01, warmup_epochs=2, verbose=1)
    falls = hvd.callbacks.LearningRateScheduleCallback(initial_lr=0.01, multiplier=0.1,
                                                       start_epoch=2)
    history = model.fit(inputs, targets, batch_size=4, epochs=4, verbose=0,
                        callbacks=[rises, falls, Watch()])
    warm = [0.005 * (1 + (step + 1) / 8) for step in range(8)]
    np.testing.assert_allclose(seen, warm + [0.01] * 4 + [0.001] * 4, rtol=1e-5)
    np.testing.assert_allclose(history.history["lr"], [0.0075, 0.01, 0.01, 0.001], rtol=1e-5)
    with raises(ValueError, "initial_lr"):
        hvd.callbacks.LearningRateScheduleCallback(None, 0.1)


def broadcasts_all_but_local_variables():
    model = model_of("sgd", run_eagerly=True)
    model.set_weights([np.full(weight.shape, hvd.rank() + 1.0) for weight in model.get_weights()])
    model.optimizer.learning_rate = 0.0
    model.fit(*data(), verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(
        1, local_variables=model.layers[0].variables)])
    own, shared = model.layers[0].get_weights(), model.layers[-1].get_weights()
    assert all((weight == hvd.rank() + 1).all() for weight in own)
    assert all((weight == 2).all() for weight in shared)


def loads_models():
    """With the optimizer's state, distributed; and without tutti as any model."""
    class MySGD(keras.optimizers.SGD):
        pass
    for kind, options in ((keras.optimizers.Adam, {}), (MySGD, {"custom_optimizers": [MySGD]})):
        model = model_of(hvd.DistributedOptimizer(kind(0.01)))
        fit_eagerly(model)
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / ("model.h5" if IS_2 else "model.keras"))
            model.save(path)
            loaded = hvd.load_model(path, **options)
            if not options:
                assert type(keras.models.load_model(path).optimizer) is kind
        assert hasattr(loaded.optimizer, "register_local_var")
        assert type(loaded.optimizer).__name__ == kind.__name__
        assert len(loaded.optimizer.variables()) == len(model.optimizer.variables())
        for one, other in zip(loaded.optimizer.variables(), model.optimizer.variables()):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)
        if options:
            fit_eagerly(loaded)
        else:
            loaded.fit(*data(), verbose=0)
        hvd_broadcast(loaded)


def fit_eagerly(model):
    """A model that is saved and loaded as one that makes graphs."""
    model.run_eagerly = True
    model.fit(*data(), verbose=0)
    model.run_eagerly = False


def keeps_configuration():
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.25))
    configuration = optimizer.get_config()
    again = type(optimizer).from_config(configuration)
    assert again.get_config() == configuration and hasattr(again, "register_local_var")
    for wrong in ({"op": 3}, {"groups": -1}):
        with raises(ValueError):
            hvd.DistributedOptimizer(keras.optimizers.Adam(), **wrong)


def legacy_optimizers():
    """Keras 2's, of before TensorFlow 2.11, whose momentum can be corrected."""
    if not IS_2:
        return
    inputs, targets = data()
    model = model_of(hvd.DistributedOptimizer(keras.optimizers.legacy.SGD(0.01, momentum=0.5)))
    model.fit(inputs, targets, batch_size=4, epochs=2, verbose=0, callbacks=[
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.01, warmup_epochs=1)])
    same_on_all_ranks(model.get_weights())
    np.testing.assert_allclose(keras.backend.get_value(model.optimizer.momentum), 0.5)


def values():
    rank = hvd.rank()
    np.testing.assert_allclose(hvd.allreduce(float(rank)), 0.5)
    np.testing.assert_allclose(hvd.allreduce([1.0, rank], average=False, name="v"), [2, 1])
    np.testing.assert_allclose(hvd.allgather([rank]), [0, 1])
    np.testing.assert_allclose(hvd.broadcast([rank, 5], 1), [1, 5])
    np.testing.assert_allclose(hvd.reducescatter([1.0, 2.0], op=hvd.Sum), [2.0 * (rank + 1)])


def takes_what_scripts_of_keras_2_say():
    """Arguments and methods of Horovod's own examples."""
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01))
    model = model_of(optimizer, run_eagerly=True,
                     **({} if IS_2 else {"experimental_run_tf_function": False}))
    model.fit(*data(), verbose=0)
    assert len(optimizer.variables()) == len(list(optimizer.variables))
    assert abs(float(np.asarray(optimizer.lr)) - 0.01) < 1e-6
    checkpoint = hvd.callbacks.BestModelCheckpoint(monitor="loss")
    checkpoint.filepath = "elsewhere.keras"


def standalone_keras():
    """tutti.keras, for scripts that import keras itself; it is Keras 3 in either case."""
    import keras as standalone
    import tutti.keras as hvd_keras
    inputs, targets = data()
    model = standalone.Sequential([standalone.layers.Dense(1)])
    model.compile(loss="mse", run_eagerly=not IS_2,  # there it is tf.keras, whose graphs fits has
                  optimizer=hvd_keras.DistributedOptimizer(standalone.optimizers.SGD(0.1)))
    model.fit(inputs, targets, verbose=0,
              callbacks=[hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
                         hvd_keras.callbacks.MetricAverageCallback()])
    same_on_all_ranks(model.get_weights())


def positional(function):
    """The names of its arguments that may be given without their names, after self."""
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name != "self"]


def arguments_stand_where_horovods_do():
    import tutti.keras as hvd_keras
    first = ["optimizer", "name", "device_dense", "device_sparse", "compression", "sparse_as_dense",
             "gradient_predivide_factor", "op"]
    passes = ["backward_passes_per_step", "average_aggregated_gradients"]
    groups, last = ["num_groups", "groups"], ["process_set", "scale_local_gradients"]
    assert positional(hvd.DistributedOptimizer) == first + passes + groups + last
    assert positional(hvd_keras.DistributedOptimizer) == first + groups
    for module in (hvd, hvd_keras):
        assert positional(module.PartialDistributedOptimizer) == [
            *first, *passes, "groups", "process_set", "local_layers", "scale_local_gradients"]
    theirs = ["monitor", "verbose", "mode", "save_freq"]
    assert positional(hvd_keras.callbacks.BestModelCheckpoint.__init__) == theirs
    theirs.insert(2, "save_weights_only")
    assert positional(hvd.callbacks.BestModelCheckpoint.__init__)[:5] == theirs


def arguments_without_names():
    """What horovod.tensorflow.keras and horovod.keras take by place."""
    import keras as standalone
    import tutti.keras as hvd_keras
    dense = (None, "", "", hvd.Compression.none, False, 1.0, hvd.Sum)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), *dense, 3, True)
    assert optimizer._settings["backward_passes_per_step"] == 3
    assert optimizer._settings["average_aggregated_gradients"] is True
    optimizer = hvd_keras.DistributedOptimizer(standalone.optimizers.SGD(1.0), *dense, 0, 2)
    assert optimizer._settings["groups"] == 2
    assert optimizer._settings["backward_passes_per_step"] == 1
    for given in (standalone.layers.Dense(1), [standalone.layers.Dense(1)]):
        hvd_keras.PartialDistributedOptimizer(standalone.optimizers.SGD(1.0), *dense, 1, False,
                                              None, hvd.global_process_set, given)
    best = hvd_keras.callbacks.BestModelCheckpoint("loss", 0, "max", 7)
    assert best.save_freq == 7 and best.save_best_only and not best.save_weights_only
