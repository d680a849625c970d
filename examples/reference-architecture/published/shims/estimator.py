"""What HorovodTF asks of tf.estimator, which TensorFlow 2.16 no longer has: a loop over a session of tf.compat.v1.

Unlike TensorFlow's own, an Estimator here builds its network in the default graph, where the script has made its data sets, so it
trains once in a process and does not evaluate. One checkpoint is saved, at the end, in model_dir.
"""
import collections
import os

import tensorflow.compat.v1 as tf

EstimatorSpec = collections.namedtuple("EstimatorSpec", "mode predictions loss train_op eval_metric_ops", defaults=(None,) * 4)
RunConfig = collections.namedtuple(
    "RunConfig", "save_checkpoints_steps save_checkpoints_secs session_config log_step_count_steps",
    defaults=(None, None, None, int(os.getenv("LOG_STEPS", "100"))))


class ModeKeys:
    """What a network is built for."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class _Saved(tf.train.SessionRunHook):
    """Saves the variables at the end, in a checkpoint that is called by the step."""

    def __init__(self, folder):
        self._folder = folder

    def begin(self):
        self._saver = tf.train.Saver(tf.global_variables())
        self._step = tf.train.get_global_step()

    def end(self, session):
        os.makedirs(self._folder, exist_ok=True)
        self._saver.save(session, os.path.join(self._folder, "model.ckpt"), global_step=session.run(self._step))


class Estimator:
    """Trains what model_fn(features, labels, mode, params) describes by an EstimatorSpec."""

    def __init__(self, model_fn, params, model_dir, config):
        self._model_fn, self._params, self._model_dir, self._config = model_fn, params, model_dir, config

    def train(self, input_fn, steps, hooks=()):
        """Runs `steps` steps; the loss is logged at the first and every log_step_count_steps after it."""
        values = {"step": tf.train.get_or_create_global_step()}
        features, labels = input_fn()
        spec = self._model_fn(features, labels, ModeKeys.TRAIN, self._params)
        values["loss"] = spec.loss
        own = [tf.train.StopAtStepHook(num_steps=steps), tf.train.NanTensorHook(spec.loss), _Saved(self._model_dir),
               tf.train.LoggingTensorHook(values, every_n_iter=self._config.log_step_count_steps)]
        with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=self._config.session_config), [*hooks, *own]) as session:
            while not session.should_stop():
                session.run(spec.train_op)
