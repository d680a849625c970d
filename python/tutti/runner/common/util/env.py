"""What the environment says about a rank, before or without init()."""
import os

_LAUNCHERS = [("HOROVOD_RANK", "HOROVOD_SIZE"),
              ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
              ("RANK", "WORLD_SIZE")]


def get_env_rank_and_size():
    """(rank, ranks) of the first launcher that has set its variables: horovodrun, Open MPI's
    mpirun, one with PMI, tutti or torchrun. (0, 1) if there is none. RuntimeError: one of a
    launcher's two variables is set without the other."""
    for names in _LAUNCHERS:
        values = [os.environ.get(name) for name in names]
        if None not in values:
            return int(values[0]), int(values[1])
        if values != [None, None]:
            raise RuntimeError(f"of {names[0]} and {names[1]} only one is set")
    return 0, 1
