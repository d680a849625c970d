"""State from one rank to all: parameters, the optimizer's state, any objects."""
import io
import pickle

import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.allgather import grouped_allgather_async
from tutti.torch.broadcast import broadcast_, broadcast_async_
from tutti.torch.handles import synchronize

try:
    import cloudpickle as _pickler  # also functions and classes of the script itself
except ImportError:
    _pickler = pickle


def _named(params):
    """(name, tensor) pairs, in an order that is the same on all ranks."""
    if isinstance(params, dict):
        return sorted(params.items())
    try:
        params = list(params)
    except TypeError as error:
        raise ValueError(f"invalid params of type: {type(params)}") from error
    return [pair if isinstance(pair, tuple) else (None, pair) for pair in params]


def broadcast_parameters(params, root_rank, process_set=global_process_set):
    """Overwrites tensors on all ranks with those of rank root_rank.

    params: model.state_dict(), model.named_parameters(), model.parameters() or a list of tensors
    or (name, tensor) pairs. What is no tensor is left alone.
    """
    handles = [broadcast_async_(tensor, root_rank, name, process_set)
               for name, tensor in _named(params) if isinstance(tensor, torch.Tensor)]
    for handle in handles:
        synchronize(handle)


class _Place:
    """Stands in a pickled state for a tensor that is broadcast by itself."""

    def __init__(self, number, tensor):
        self.number, self.shape, self.dtype = number, tuple(tensor.shape), tensor.dtype
        self.device = tensor.device.type

    def empty(self):
        return torch.empty(self.shape, dtype=self.dtype, device=self.device)


def _replaced(value, kind, replace):
    """`value` with what is of type `kind` in its dicts, lists and tuples replaced."""
    if isinstance(value, kind):
        return replace(value)
    if isinstance(value, dict):
        return {key: _replaced(one, kind, replace) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(one, kind, replace) for one in value)
    return value


def _broadcast_state(state, root_rank, process_set):
    """`state`, nested dicts and lists with tensors in them, as it is on rank root_rank."""
    tensors = []

    def take(tensor):
        tensors.append(tensor.detach())
        return _Place(len(tensors) - 1, tensor)

    is_root = comm.rank() == root_rank
    frame = _replaced(state, torch.Tensor, take) if is_root else None
    frame = broadcast_object(frame, root_rank, "tutti.state", process_set)
    if not is_root:
        tensors = {}
        state = _replaced(frame, _Place,
                          lambda place: tensors.setdefault(place.number, place.empty()))
        tensors = [tensors[number] for number in sorted(tensors)]
    broadcast_parameters([(f"tutti.state.{i}", tensor) for i, tensor in enumerate(tensors)],
                         root_rank, process_set)
    return state


def _give_gradients(optimizer):
    """Zeros where there are none: what scripts of Horovod's find after this."""
    for p in [p for group in optimizer.param_groups for p in group["params"]]:
        if p.requires_grad and p.grad is None:
            p.grad = torch.zeros_like(p)


def broadcast_optimizer_state(optimizer, root_rank, model=None, process_set=global_process_set):
    """Gives all ranks the optimizer's state and options (learning rates, ...) of rank root_rank,
    also such as an optimizer has that has not made a step yet.

    model is not needed, and taken since Horovod takes it. ValueError for torch.optim.LBFGS, whose
    state is not of single parameters.
    """
    del model
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    if not optimizer.state:
        _give_gradients(optimizer)
    state = _broadcast_state(optimizer.state_dict(), root_rank, process_set)
    if comm.rank() != root_rank:
        optimizer.load_state_dict(state)


def _pickled(obj):
    """As a tensor of bytes."""
    stream = io.BytesIO()
    _pickler.dump(obj, stream)
    return torch.frombuffer(stream.getbuffer(), dtype=torch.uint8)


def _unpickled(tensor):
    return pickle.loads(tensor.numpy().tobytes())


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Rank root_rank's object, pickled (by cloudpickle where that is installed), on all ranks.

    name: the same on all ranks; None: the name of obj's type, which then has to be.
    """
    name = name or type(obj).__name__
    is_root = comm.rank() == root_rank
    data = _pickled(obj) if is_root else None
    size = torch.tensor([len(data) if is_root else 0])
    broadcast_(size, root_rank, f"{name}.sz", process_set)
    if not is_root:
        data = torch.empty(size.item(), dtype=torch.uint8)
    broadcast_(data, root_rank, f"{name}.t", process_set)
    return obj if is_root else _unpickled(data)


def allgather_object(obj, name=None, process_set=global_process_set):
    """The list of all ranks' objects, by rank."""
    name = name or type(obj).__name__
    data = _pickled(obj)
    sizes, gathered = synchronize(grouped_allgather_async(
        [torch.tensor([len(data)]), data], f"{name}.object", process_set))
    return [_unpickled(part) for part in gathered.split(sizes.tolist())]
