"""run() of a function: how it comes to the ranks and its results back, over the launcher's board.

As a program (python -m tutti.runner.function) it is what every rank runs.
"""
import os
import sys

from tutti.comm import address, session
from tutti.comm.board import Board

try:
    import cloudpickle as pickle
except ImportError:
    import pickle

_CALL, _RESULT = "run/function", "run/result"


def _pickled(func, args, kwargs):
    if pickle.__name__ == "pickle" and getattr(func, "__module__", "") == "__main__":
        raise ValueError(
            f"{func.__name__} is defined in the main program: pip install cloudpickle, or move it to a "
            "module")
    return pickle.dumps((func, args, kwargs))


def run(settings, func, args, kwargs, executable):
    """What the ranks returned, in their order. RuntimeError if one failed."""
    from tutti.runner import launch, settings as ranks
    from tutti.runner.board import BoardServer
    call = _pickled(func, args, kwargs)
    all_local = settings.discovery_script is None and all(map(address.is_local, settings.hosts))
    here = "127.0.0.1" if all_local else ranks.address_of("localhost", settings, False)
    settings.command = [executable, "-m", "tutti.runner.function"]
    board = BoardServer(here, settings.token)
    try:
        board.put(_CALL, call)
        code = launch.launch(settings, {"TUTTI_BOARD": f"{here}:{board.port}"}, board)
        if code != 0:
            raise RuntimeError(f"a rank of {func.__name__} failed with exit code {code}: see above")
        results, rank = [], 0
        while (value := board.get(f"{_RESULT}/{rank}")) is not None:
            results.append(pickle.loads(value))
            rank += 1
        return results
    finally:
        board.close()


def main():
    board = Board.from_environment()
    if board is None:
        sys.exit("tutti.runner.function is started by tutti.runner.run() alone")
    func, args, kwargs = pickle.loads(board.get(_CALL))
    value = func(*args, **kwargs)
    rank = session.current().placement.rank if session.exists() else int(os.environ.get("RANK", 0))
    board.put(f"{_RESULT}/{rank}", pickle.dumps(value))


if __name__ == "__main__":
    main()
