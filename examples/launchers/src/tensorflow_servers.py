"""TensorFlow's ParameterServerStrategy. It wants a coordinator of its own kind beside workers and parameter servers;
Azure ML's TF_CONFIG has none, and its worker 0 is the chief by TensorFlow's own rule. So worker 0 coordinates, and the
others serve until the job ends, which it does when worker 0 has ended."""
import json
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def cluster_of(config):
    """(ClusterSpec with worker 0 as "chief", this task's type and index in it) of a TF_CONFIG."""
    cluster, task = config["cluster"], config["task"]
    chief, *workers = cluster["worker"]
    spec = tf.train.ClusterSpec({"chief": [chief], "worker": workers, "ps": cluster["ps"]})
    if task["type"] != "worker":
        return spec, task["type"], task["index"]
    return (spec, "chief", 0) if task["index"] == 0 else (spec, "worker", task["index"] - 1)


def coordinate(spec):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="chief", task_id=0, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights, bias = tf.Variable(tf.zeros([2, 1])), tf.Variable(tf.zeros([1]))
    x = np.random.RandomState(7).randn(256, 2).astype("float32")
    y = x @ np.array([[3.0], [-2.0]], "float32") + 1

    @tf.function
    def step(first):
        batch_x, batch_y = tf.constant(x)[first:first + 32], tf.constant(y)[first:first + 32]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((batch_x @ weights + bias - batch_y) ** 2)
        for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
            variable.assign_sub(0.1 * gradient)

    for number in range(160):  # workers take steps as they are free, on variables that the servers hold
        coordinator.schedule(step, args=(tf.constant(32 * (number % 8)),))
    coordinator.join()
    (w1,), (w2,) = weights.numpy()
    print(f"{spec.num_tasks('worker')} workers, {spec.num_tasks('ps')} server: {w1:.2f} {w2:.2f} {bias.numpy()[0]:.2f}")
    os.makedirs("outputs", exist_ok=True)
    np.savez("outputs/model.npz", weights=weights.numpy(), bias=bias.numpy())


def main():
    spec, kind, index = cluster_of(json.loads(os.environ["TF_CONFIG"]))
    if kind == "chief":
        coordinate(spec)
    else:
        print(f"{kind} {index} serves", flush=True)
        # With one thread, as on one core, a worker would wait for itself.
        threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=spec.num_tasks("worker") + 2)
        tf.distribute.Server(spec, job_name=kind, task_index=index, protocol="grpc", config=threads).join()


if __name__ == "__main__":
    main()
