"""What the distributed optimizers have in common: names, hooks, and the class they are made of."""
import contextlib

TOO_MANY_PASSES = ("Gradients were computed more than backward_passes_per_step times before call "
                   "to step(). Increase backward_passes_per_step to accumulate gradients locally.")
ZEROED_TOO_EARLY = ("optimizer.zero_grad() was called after loss.backward() but before "
                    "optimizer.step() or optimizer.synchronize(): gradients are being reduced.")


def wrapped(optimizer, behaviour):
    """`optimizer` again, as of a class that has `behaviour` before its own; they share their state
    and parameter groups, so that a learning rate schedule made for the first goes on working."""
    kind = type(optimizer)
    made = object.__new__(type(kind.__name__, (behaviour, kind), {"__module__": __name__}))
    made.__dict__.update(optimizer.__dict__)
    made.__dict__.pop("step", None)  # a schedule counts the first one's steps by this
    return made


def named(optimizer, named_parameters):
    """The name of every parameter. ValueError: a name stands twice, or a parameter has none."""
    if named_parameters is None:
        pairs = [(f"allreduce.noname.{i}.{j}", p) for i, group in enumerate(optimizer.param_groups)
                 for j, p in enumerate(group["params"])]
    else:
        pairs = list(named_parameters)
    if any(not isinstance(pair, tuple) for pair in pairs):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), "
                         "usually produced by model.named_parameters().")
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: "
                         + ", ".join(twice))
    name_of = {p: name for name, p in pairs}
    unnamed = [p for group in optimizer.param_groups for p in group["params"] if p not in name_of]
    if unnamed:
        shapes = ", ".join(str(list(p.shape)) for p in unnamed)
        raise ValueError("named_parameters was specified, but one or more model parameters were "
                         f"not named, of the shapes {shapes}")
    return name_of


def call_when_ready(p, owner, method):
    """Calls owner().method(p) whenever backward has added to p's gradient, as long as the owner
    (a weak reference) lives."""

    def hook(parameter):
        alive = owner()
        if alive is not None:
            getattr(alive, method)(parameter)

    return p.register_post_accumulate_grad_hook(hook)


@contextlib.contextmanager
def only(optimizer, p):
    """Within it the optimizer's groups are of this parameter alone."""
    kept = [group["params"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["params"] = [q for q in group["params"] if q is p]
    try:
        yield
    finally:
        for group, parameters in zip(optimizer.param_groups, kept):
            group["params"] = parameters
