"""What train_tensorflow.py and train_keras.py share: images as a tf.data.Dataset, and a GPU for each rank."""
import tensorflow as tf

import imagenet_data


def dataset(arguments, data, images, training):
    """Batches of images (BATCH x SIZE x SIZE x 3) and their labels; without an end if they are for training.
    images: this rank's share; None: synthetic ones."""
    size = arguments.image_size
    if images is None:
        batch = (tf.random.normal([arguments.batch_size, size, size, 3]),
                 tf.random.uniform([arguments.batch_size], maxval=data.classes, dtype=tf.int32))
        return tf.data.Dataset.from_tensors(batch).repeat()

    def part_of(image):
        """A part of 8 % of the image or more, one time in two mirrored."""
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.shape(image), tf.constant([[[0.0, 0.0, 1.0, 1.0]]]), area_range=(0.08, 1.0), aspect_ratio_range=(3 / 4, 4 / 3),
            use_image_if_no_bounding_boxes=True)
        return tf.image.random_flip_left_right(tf.slice(image, begin, extent))

    def middle_of(image):
        """The middle square, of 7/8 of the shorter side."""
        side = tf.reduce_min(tf.shape(image)[:2]) * 7 // 8
        return tf.image.resize_with_crop_or_pad(image, side, side)

    def read(path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.image.resize((part_of if training else middle_of)(image), [size, size])
        return (tf.ensure_shape(image, [size, size, 3]) / 255.0 - imagenet_data.MEAN) / imagenet_data.DEVIATION, label

    rows = tf.data.Dataset.from_tensor_slices((images.paths, images.labels))
    if training:
        rows = rows.shuffle(len(images.paths)).repeat()
    return rows.map(read, num_parallel_calls=tf.data.AUTOTUNE).batch(arguments.batch_size).prefetch(tf.data.AUTOTUNE)


def take_own_gpu(local_rank):
    """Where TensorFlow finds GPUs each rank of a node computes on one of its own."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        own = gpus[local_rank % len(gpus)]
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
