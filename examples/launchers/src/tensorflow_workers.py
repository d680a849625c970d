"""TensorFlow's MultiWorkerMirroredStrategy: each process is a worker and finds the others in TF_CONFIG.
Keras 3 does not train under it, so this is Keras 2 (the package tf-keras)."""
import json
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    x = np.random.RandomState(7).randn(256, 2).astype("float32")
    y = x @ np.array([[3.0], [-2.0]], "float32") + 1
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    model.fit(data.with_options(options), epochs=10, verbose=0)
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    (w1,), (w2,) = model.get_weights()[0]
    bias = model.get_weights()[1][0]
    print(f"worker {index} of {strategy.num_replicas_in_sync}: {w1:.2f} {w2:.2f} {bias:.2f}", flush=True)
    # All workers save, since that is a collective step; only the first one's is kept.
    folder = "outputs" if index == 0 else os.environ["TMPDIR"]
    os.makedirs(folder, exist_ok=True)
    model.save_weights(os.path.join(folder, "model.weights.h5"))


if __name__ == "__main__":
    main()
