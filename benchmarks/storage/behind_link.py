"""Where a benchmark's store runs: on loopback, or in a network namespace of its own behind a link of a given speed."""
import contextlib

from shaped_network import Network


@contextlib.contextmanager
def behind(link):
    """The words before a command that has it run behind a link of so many Mbit/s, and the address that it has there; 0: on loopback."""
    if not link:
        yield [], "127.0.0.1"
        return
    with Network(["store"]) as network:
        network.shape(link)
        yield network.within("store"), network.address["store"]
