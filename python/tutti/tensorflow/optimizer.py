"""Optimizers of tf.compat.v1.train that step by the gradients of all ranks; DistributedOptimizer
for these and for Keras's."""
import tensorflow as tf

from tutti.tensorflow.compression import Compression
from tutti.tensorflow.gradient_aggregation import LocalGradientAggregation
from tutti.tensorflow.gradient_reduction import GradientReduction, checked_groups
from tutti.tensorflow.mpi_ops import Adasum, Average, global_process_set
from tutti.tensorflow.reductions import allreduce

_Optimizer = tf.compat.v1.train.Optimizer


class _Wrapping(_Optimizer):
    """Another optimizer's slots and variables as its own."""

    def __init__(self, optimizer, name, use_locking):
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


class _DistributedOptimizer(_Wrapping):
    """compute_gradients gives the gradients of all ranks."""

    def __init__(self, optimizer, name=None, use_locking=False, backward_passes_per_step=1,
                 average_aggregated_gradients=False, **reduction):
        name = name or f"Distributed{type(optimizer).__name__}"
        super().__init__(optimizer, name, use_locking)
        self._reduction = GradientReduction(name, **reduction)
        self._agg_helper = None
        if backward_passes_per_step > 1:
            if tf.executing_eagerly():
                raise ValueError("backward_passes_per_step > 1 needs a graph, with optimizers of "
                                 "tf.compat.v1")
            self._agg_helper = LocalGradientAggregation(backward_passes_per_step, self._reduction,
                                                        reduction["sparse_as_dense"],
                                                        average_aggregated_gradients)

    def register_local_var(self, var):
        """The variable's gradient is this rank's own, divided by the ranks unless
        scale_local_gradients=False was given."""
        self._reduction.register_local(var)

    def compute_gradients(self, *args, **kwargs):
        gradients, variables = zip(*self._optimizer.compute_gradients(*args, **kwargs))
        reduce = self._agg_helper.compute_gradients if self._agg_helper else self._reduction
        return list(zip(reduce(gradients, variables), variables))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        grads_and_vars = list(grads_and_vars)

        def apply():
            return self._optimizer.apply_gradients(grads_and_vars, global_step=global_step,
                                                   name=name)

        def skip():
            return None if global_step is None else global_step.assign_add(1, read_value=False)

        if self._agg_helper is None:
            return apply()
        return self._agg_helper.apply_gradients(apply, skip,
                                                [gradient for gradient, _ in grads_and_vars])


class _DistributedAdasumOptimizer(_Wrapping):
    """The rank's own optimizer steps; by how far the variables have moved since the last time is
    then reduced by Adasum (Maleki et al., "Scaling distributed training with adaptive summation",
    2020), at every `backward_passes_per_step`-th step."""

    def __init__(self, optimizer, name=None, use_locking=False, device_dense="",
                 compression=Compression.none, backward_passes_per_step=1):
        super().__init__(optimizer, name or f"DistributedDelta{type(optimizer).__name__}",
                         use_locking)
        self._reduction = {"device_dense": device_dense, "compression": compression, "op": Adasum}
        self._every = backward_passes_per_step
        self._starts = {}  # by the variable: where it was when the ranks last agreed
        self._step = tf.Variable(0, trainable=False, dtype=tf.int64, name="adasum_step")

    def compute_gradients(self, *args, **kwargs):
        return self._optimizer.compute_gradients(*args, **kwargs)

    def _start_of(self, variable):
        if variable.ref() not in self._starts:
            zeros = tf.zeros(variable.shape, variable.dtype.base_dtype)
            self._starts[variable.ref()] = tf.Variable(zeros, trainable=False, name="delta_start")
        return self._starts[variable.ref()]

    def _agree(self, variables):
        """Ops that move the variables, and their starts, to where all ranks together go."""
        done = []
        for variable in variables:
            start = self._start_of(variable)
            moved = allreduce(variable - start, **self._reduction)
            there = start + moved
            with tf.control_dependencies([there]):
                done += [variable.assign(there), start.assign(there)]
        return done

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        grads_and_vars = list(grads_and_vars)
        variables = [variable for gradient, variable in grads_and_vars if gradient is not None]
        starts = [self._start_of(variable) for variable in variables]

        def begin():
            return _all_of([start.assign(variable) for start, variable in zip(starts, variables)])

        begun = tf.cond(tf.equal(self._step.read_value(), 0), begin, lambda: tf.constant(True))
        with tf.control_dependencies([begun]):
            applied = self._optimizer.apply_gradients(grads_and_vars, global_step=global_step,
                                                      name=name)
        with tf.control_dependencies(_operations([applied])):
            step = self._step.assign_add(1)
        with tf.control_dependencies(_operations([step])):
            return tf.cond(tf.equal(self._step.read_value() % self._every, 0),
                           lambda: _all_of(self._agree(variables)), lambda: tf.constant(True))


def _operations(made):
    return [getattr(one, "op", one) for one in made if one is not None]


def _all_of(made):
    with tf.control_dependencies(_operations(made)):
        return tf.constant(True)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense="", device_sparse="",
                         compression=Compression.none, sparse_as_dense=False,
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True):
    """An optimizer that steps by the gradients of all ranks: of tf.compat.v1.train, or Keras's.

    optimizer: the one that makes a step of the reduced gradients.
    name: what its ops are called; by default "Distributed" and the optimizer's class.
    use_locking: of optimizers of tf.compat.v1.train.
    device_dense, device_sparse: where it runs; the collectives themselves are the CPU's.
    compression: Compression.fp16 halves what is sent of float32.
    sparse_as_dense: sparse gradients are made dense, and reduced instead of gathered.
    backward_passes_per_step: gradients of so many passes are added up for one step.
    op: Average, Sum; of optimizers of tf.compat.v1.train also Adasum, Min, Max, Product.
    gradient_predivide_factor: of the mean's 1 / size, 1 / this comes before the sum.
    average_aggregated_gradients: the mean of the passes for one step, and not their sum.
    groups: a number: the gradients are dealt to so many groups, each reduced all or none; or a list
        of lists of variables, which are the groups.
    num_groups: of old scripts, groups instead.
    process_set: reduces over these ranks only; others step by their own gradients.
    scale_local_gradients: gradients of local variables are divided by the ranks.

    ValueError: the arguments make no sense together.
    """
    groups = checked_groups(groups, num_groups, op, gradient_predivide_factor)
    if op == Adasum and average_aggregated_gradients:
        raise ValueError("Adasum does not go with average_aggregated_gradients=True")
    reduction = {"device_dense": device_dense, "device_sparse": device_sparse,
                 "compression": compression, "sparse_as_dense": sparse_as_dense,
                 "gradient_predivide_factor": gradient_predivide_factor, "groups": groups,
                 "process_set": process_set, "scale_local_gradients": scale_local_gradients}
    passes = {"backward_passes_per_step": backward_passes_per_step}
    if not isinstance(optimizer, _Optimizer):
        if op == Adasum:
            raise ValueError("op=Adasum is for optimizers of tf.compat.v1.train, not for Keras's")
        from tutti._keras.optimizer import distributed
        return distributed(optimizer, name=name, op=op,
                           average_aggregated_gradients=average_aggregated_gradients, **passes,
                           **reduction)
    if op == Adasum:
        if process_set.process_set_id != 0:
            raise NotImplementedError("Adasum is of all ranks, not of a process set")
        return _DistributedAdasumOptimizer(optimizer, name, use_locking, device_dense, compression,
                                           **passes)
    return _DistributedOptimizer(optimizer, name, use_locking, op=op,
                                 average_aggregated_gradients=average_aggregated_gradients,
                                 **passes, **reduction)


def DistributedAdasumOptimizer(optimizer, name=None, use_locking=False, device_dense="",
                               device_sparse="", compression=Compression.none,
                               backward_passes_per_step=1):
    """DistributedOptimizer(optimizer, op=Adasum, ...)."""
    return DistributedOptimizer(optimizer, name, use_locking, device_dense, device_sparse,
                                compression, backward_passes_per_step=backward_passes_per_step,
                                op=Adasum)


def broadcast_global_variables(root_rank):
    """In a graph of TensorFlow 1: an op that gives all global variables the values of rank
    `root_rank`. RuntimeError in eager mode, where broadcast_variables takes them."""
    if tf.executing_eagerly():
        raise RuntimeError("hvd.broadcast_global_variables is for graphs of TensorFlow 1: in eager "
                           "mode use hvd.broadcast_variables(<the model's and the optimizer's "
                           "variables>, root_rank)")
    from tutti.tensorflow.functions import broadcast_variables
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """broadcast_global_variables when a session has begun: of MonitoredTrainingSession, for one."""

    def __init__(self, root_rank, device=""):
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op = None

    def begin(self):
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        session.run(self.bcast_op)
