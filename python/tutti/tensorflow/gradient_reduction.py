"""What optimizers and tapes do with a step's gradients."""
import warnings

import tensorflow as tf

from tutti.tensorflow import reductions
from tutti.tensorflow.mpi_ops import Average, global_process_set
from tutti.tensorflow.compression import Compression
from tutti.tensorflow.util import as_it_is, identity_of


def checked_groups(groups, num_groups, op, gradient_predivide_factor):
    """The groups, where num_groups of old scripts may stand for them. ValueError: the arguments
    make no sense."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average only")
    if num_groups != 0:
        warnings.warn("num_groups has been replaced by groups", DeprecationWarning, stacklevel=3)
        groups = num_groups if groups is None else groups
    if groups is not None and not (isinstance(groups, list) or groups > 0):
        raise ValueError("groups is a positive number, or a list of lists of variables")
    return groups


def _dealt(places, groups):
    """A list of places in `groups` lists, as even as can be, in order."""
    short, more = divmod(len(places), groups)
    sizes = [short + (number < more) for number in range(groups)]
    return [[places.pop(0) for _ in range(size)] for size in sizes if size > 0]


class GradientReduction:
    """Gradients of this rank into those of all ranks of the set, by call:

        reduction(gradients, variables) -> gradients, in this order

    A gradient may be None (it stays) or tf.IndexedSlices. A variable that was registered as local
    keeps this rank's gradient, divided by the ranks if scale_local_gradients, so that it weighs as
    much as the others' mean. Arguments are those of DistributedOptimizer.
    """

    def __init__(self, name, device_dense="", device_sparse="", compression=Compression.none,
                 sparse_as_dense=False, op=Average, gradient_predivide_factor=1.0, groups=None,
                 process_set=global_process_set, scale_local_gradients=True):
        self.process_set = process_set
        self._name = name
        self._devices = {"device_dense": device_dense, "device_sparse": device_sparse}
        self._sparse_as_dense = sparse_as_dense
        self._groups = groups
        self._scale_local_gradients = scale_local_gradients
        self._local = set()
        self._reduction = {"compression": compression, "op": op, "process_set": process_set}
        if op == Average:  # 1 / size is the library's part of it
            self._reduction["prescale_factor"] = 1.0 / gradient_predivide_factor
            self._reduction["postscale_factor"] = gradient_predivide_factor

    def register_local(self, variable):
        """Its gradient is this rank's own from now on."""
        self._local.add(identity_of(variable))

    def is_local(self, variable):
        return identity_of(variable) in self._local

    @as_it_is
    def __call__(self, gradients, variables, use_generic_names=False):
        gradients = list(gradients)
        local = [self.is_local(variable) for variable in variables]
        shared = [place for place, its_own in enumerate(local)
                  if not its_own and gradients[place] is not None]
        if self._scale_local_gradients and any(local):
            size = reductions._size_of(self.process_set, tf.float64)
            gradients = [reductions.divided(gradient, size) if its_own else gradient
                         for gradient, its_own in zip(gradients, local)]
        if shared and self._others_take_part():
            reduced = self._reduce([gradients[place] for place in shared],
                                   [variables[place] for place in shared], use_generic_names)
            for place, one in zip(shared, reduced):
                gradients[place] = one
        return gradients

    def _others_take_part(self):
        """While ranks come and go, a graph that was made by one alone may run among several."""
        has_others = self.process_set.size() > 1 or reductions.is_elastic()
        return has_others and self.process_set.included()

    def _reduce(self, gradients, variables, use_generic_names):
        if self._sparse_as_dense:
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        with tf.name_scope(self._name + "_Allreduce"):
            if self._groups is None:
                return self._reduce_each(gradients, use_generic_names)
            return self._reduce_groups(gradients, variables, use_generic_names)

    def _reduce_each(self, gradients, use_generic_names):
        """Each by itself, all dense ones at once."""
        reduced = list(gradients)
        dense = [place for place, one in enumerate(gradients)
                 if not isinstance(one, tf.IndexedSlices)]
        if dense:
            found = reductions.allreduce_each([gradients[place] for place in dense],
                                              [f"grad_{place}" for place in dense],
                                              self._devices["device_dense"],
                                              ignore_name_scope=use_generic_names,
                                              **self._without_ones())
            for place, one in zip(dense, found):
                reduced[place] = one
        for place, one in enumerate(gradients):
            if isinstance(one, tf.IndexedSlices):
                reduced[place] = reductions.allreduce(one,
                                                      device_sparse=self._devices["device_sparse"],
                                                      **self._without_ones())
        return reduced

    def _without_ones(self):
        """Sparse tensors know no factors."""
        return {key: value for key, value in self._reduction.items()
                if value != 1.0 or not key.endswith("factor")}

    def _reduce_groups(self, gradients, variables, use_generic_names):
        """The gradients of a group all or none."""
        reduced = list(gradients)
        for number, places in enumerate(self._places(variables)):
            name = f"grad_{number}" if use_generic_names else None
            found = reductions.grouped_allreduce([gradients[place] for place in places], name=name,
                                                 ignore_name_scope=use_generic_names,
                                                 **self._devices, **self._without_ones())
            for place, one in zip(places, found):
                reduced[place] = one
        return reduced

    def _places(self, variables):
        """Returns the places of the variables of every group. Variables that are in no list form
        groups of their own."""
        if not isinstance(self._groups, list):
            return _dealt(list(range(len(variables))), self._groups)
        left = {identity_of(variable): place for place, variable in enumerate(variables)}
        listed = [[left.pop(one) for one in map(identity_of, group) if one in left]
                  for group in self._groups]
        return [places for places in listed if places] + [[place] for place in left.values()]
