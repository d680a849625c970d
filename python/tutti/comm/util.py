"""Small questions that Horovod's users import from horovod.common.util."""
import contextlib
import functools
import importlib.util
import os
import warnings

from tutti.comm import basics

EXTENSIONS = ["tensorflow", "torch"]

_cache = functools.lru_cache(maxsize=None)  # Horovod's name, which its tests import


def extension_available(ext_base_name, verbose=False):
    """Whether a framework ("torch", "tensorflow") can be imported; nothing has to be compiled for
    it."""
    return ext_base_name in EXTENSIONS and importlib.util.find_spec(ext_base_name) is not None


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    """ImportError if the framework of horovod.FRAMEWORK is not installed."""
    framework = ext_name.rsplit(".", 1)[-1]
    if not extension_available(framework):
        raise ImportError(f"{ext_name} needs {framework}, which is not installed")


def gpu_available(ext_base_name, verbose=False):
    """Whether that framework sees a GPU. Imports it."""
    if not extension_available(ext_base_name):
        return False
    if ext_base_name == "torch":
        import torch
        return torch.cuda.is_available()
    import tensorflow
    return bool(tensorflow.config.list_physical_devices("GPU"))


def mpi_built(verbose=False):
    return basics.mpi_built()


def gloo_built(verbose=False):
    return basics.gloo_built()


def nccl_built(verbose=False):
    return basics.nccl_built()


def ddl_built(verbose=False):
    return basics.ddl_built()


def ccl_built(verbose=False):
    return basics.ccl_built()


@contextlib.contextmanager
def env(**variables):
    """These environment variables for the time of a with statement; None leaves one as it is."""
    variables = {name: value for name, value in variables.items() if value is not None}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def get_average_backwards_compatibility_fun(reduce_ops):
    """A function of (op, average) that gives the op which a call means: the old `average` becomes
    Average or Sum of `reduce_ops`. ValueError if both are given."""
    def chosen(op, average):
        if average is None:
            return reduce_ops.Average if op is None else op
        if op is not None:
            raise ValueError(
                "The op parameter supersedes average. Please provide only one of them.")
        warnings.warn("Parameter `average` has been replaced with `op`",
                      DeprecationWarning,
                      stacklevel=3)
        return reduce_ops.Average if average else reduce_ops.Sum

    return chosen


def num_rank_is_power_2(num_rank):
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l, n):
    """n parts of a list, in order, of which the first are longer by one where it does not divide
    evenly."""
    length, longer = divmod(len(l), n)
    ends = [part * length + min(part, longer) for part in range(n + 1)]
    return [l[begin:end] for begin, end in zip(ends, ends[1:])]


def check_installed_version(name, version, exception=None):
    """Nothing: no framework's version is built in."""


def is_version_greater_equal_than(ver, target):
    """Whether version `ver` is `target` or later; both are texts, `target` of the form
    major.minor.patch."""
    from packaging.version import parse
    if not isinstance(ver, str) or not isinstance(target, str):
        raise ValueError(f"versions are texts, not {ver!r} and {target!r}")
    if len(target.split(".")) != 3:
        raise ValueError(f'"{target}" is not of the form major.minor.patch')
    return parse(ver) >= parse(target)
