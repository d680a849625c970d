"""Trains ResNet-50 on folders of images by Keras' fit, data parallel in Horovod's style.

    FAKE=True horovodrun -np 2 python train_keras.py
    tutti run job-keras.yml
"""
import time

import horovod.tensorflow.keras as hvd
import tensorflow as tf

import imagenet_data
import imagenet_tensorflow


class Report(tf.keras.callbacks.Callback):
    """Rank 0's line at the end of an epoch; behind MetricAverageCallback, which has made the means by then."""

    def __init__(self, arguments, steps):
        super().__init__()
        self.arguments, self.steps = arguments, steps

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.ended = time.perf_counter()  # before the held-out images

    def on_epoch_end(self, epoch, logs=None):
        if hvd.rank() == 0:
            imagenet_data.report(self.arguments, epoch + 1, self.steps, hvd.size(), float(self.model.optimizer.learning_rate.numpy()),
                                 self.ended - self.began, logs["loss"], logs.get("val_accuracy"))


def callbacks_of(arguments, steps):
    rate = lambda epochs: imagenet_data.learning_rate(arguments, epochs, hvd.size())
    return [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateScheduleCallback(1.0, rate, staircase=False, momentum_correction=False, steps_per_epoch=steps),
        Report(arguments, steps),
    ]


def main():
    arguments = imagenet_data.options("Trains ResNet-50 by Keras.")
    data = imagenet_data.find(arguments)
    hvd.init()
    imagenet_tensorflow.take_own_gpu(hvd.local_rank())
    tf.keras.utils.set_random_seed(hvd.rank())  # crops of its own; the weights are rank 0's

    mine = [images and images.share(hvd.rank(), hvd.size()) for images in (data.train, data.val)]
    batches = imagenet_tensorflow.dataset(arguments, data, mine[0], training=True)
    tests = imagenet_tensorflow.dataset(arguments, data, mine[1], training=False) if data.val else None
    steps = imagenet_data.steps_of(arguments, data, hvd.size())

    model = tf.keras.applications.ResNet50(weights=None, classes=data.classes, classifier_activation=None,
                                           input_shape=(arguments.image_size, arguments.image_size, 3))
    # Keras takes the decay off the weights beside the momentum, which would make ten times as much of it.
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(arguments.lr, momentum=0.9, weight_decay=1e-3))
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(batches, epochs=arguments.epochs, steps_per_epoch=steps, validation_data=tests, shuffle=False, verbose=0,
              callbacks=callbacks_of(arguments, steps))

    if hvd.rank() == 0:
        arguments.output.mkdir(parents=True, exist_ok=True)
        model.save(arguments.output / "model.keras")


if __name__ == "__main__":
    main()
