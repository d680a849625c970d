"""Runs what Settings ask for, from a program or a notebook, and ends it well on signals."""
import asyncio
import signal
import threading

from tutti.runner import elastic, static
from tutti.runner.master import HostUnusable

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def _run(settings, extra, board):
    loop = asyncio.get_running_loop()
    stop, at_once = loop.create_future(), asyncio.Event()

    def on_signal(number):
        if stop.done():
            at_once.set()
        else:
            stop.set_result(number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:
        for number in _SIGNALS:
            loop.add_signal_handler(number, on_signal, number)
    try:
        if settings.elastic:
            return await elastic.run(settings, stop, at_once, extra, board)
        return await static.run(settings, stop, at_once, extra)
    except static.Interrupted as interruption:
        static.say(f"ended by {signal.Signals(interruption.args[0]).name}")
        return 128 + interruption.args[0]
    except (HostUnusable, ValueError, OSError) as error:
        static.say(str(error))
        return 1
    finally:
        if in_main_thread:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def launch(settings, extra=None, board=None):
    """The run's exit code. `extra`: further variables for the ranks; `board`: a BoardServer that is
    open already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_run(settings, extra or {}, board))
    result = []  # a notebook has a loop of its own on this thread
    thread = threading.Thread(
        target=lambda: result.append(asyncio.run(_run(settings, extra or {}, board))))
    thread.start()
    thread.join()
    return result[0]
