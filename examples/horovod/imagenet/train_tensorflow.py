"""Trains ResNet-50 on folders of images by TensorFlow with a loop of its own, data parallel in Horovod's style.

    FAKE=True horovodrun -np 2 python train_tensorflow.py
    tutti run job-tensorflow.yml
"""
import time

import horovod.tensorflow as hvd
import tensorflow as tf

import imagenet_data
import imagenet_tensorflow


def step_of(model, optimizer, loss_of):
    """A function of a batch that makes a step and returns this rank's loss."""
    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss
    return step


def train(step, optimizer, batches, rates):
    """A step for each rate. Returns the mean loss over the ranks."""
    total = tf.zeros([])
    for rate in rates:
        optimizer.learning_rate.assign(rate)
        total += step(*next(batches))
    return float(hvd.allreduce(total / len(rates), name="loss"))


def test_of(model):
    """A function of a batch that returns how many images the model knows, and how many there are."""
    @tf.function(reduce_retracing=True)
    def test(images, labels):
        guesses = tf.argmax(model(images, training=False), axis=1, output_type=labels.dtype)
        return tf.stack([tf.math.count_nonzero(guesses == labels), tf.size(labels, tf.int64)])
    return test


def share_that_is_right(test, batches):
    """The share of the held-out images, over all ranks, whose class is the model's first guess."""
    right = sum((test(*batch) for batch in batches), tf.zeros([2], tf.int64))
    right, count = hvd.allreduce(right, name="right", op=hvd.Sum).numpy()
    return float(right / count)


def main():
    arguments = imagenet_data.options("Trains ResNet-50 by TensorFlow.")
    data = imagenet_data.find(arguments)
    hvd.init()
    imagenet_tensorflow.take_own_gpu(hvd.local_rank())
    tf.keras.utils.set_random_seed(hvd.rank())  # crops of its own; the weights are rank 0's

    mine = [images and images.share(hvd.rank(), hvd.size()) for images in (data.train, data.val)]
    batches = iter(imagenet_tensorflow.dataset(arguments, data, mine[0], training=True))
    tests = imagenet_tensorflow.dataset(arguments, data, mine[1], training=False) if data.val else None
    steps = imagenet_data.steps_of(arguments, data, hvd.size())

    model = tf.keras.applications.ResNet50(weights=None, classes=data.classes, classifier_activation=None,
                                           input_shape=(arguments.image_size, arguments.image_size, 3))
    # Keras takes the decay off the weights beside the momentum, which would make ten times as much of it.
    optimizer = tf.keras.optimizers.SGD(arguments.lr, momentum=0.9, weight_decay=1e-3)
    optimizer.build(model.trainable_variables)
    hvd.broadcast_variables(list(model.variables) + list(optimizer.variables), root_rank=0)
    step = step_of(model, optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    test = test_of(model)

    for epoch in range(arguments.epochs):
        rates = [imagenet_data.learning_rate(arguments, epoch + number / steps, hvd.size()) for number in range(steps)]
        began = time.perf_counter()
        loss = train(step, optimizer, batches, rates)
        seconds = time.perf_counter() - began
        top1 = share_that_is_right(test, tests) if tests else None
        if hvd.rank() == 0:
            imagenet_data.report(arguments, epoch + 1, steps, hvd.size(), rates[-1], seconds, loss, top1)

    if hvd.rank() == 0:
        arguments.output.mkdir(parents=True, exist_ok=True)
        model.save(arguments.output / "model.keras")


if __name__ == "__main__":
    main()
