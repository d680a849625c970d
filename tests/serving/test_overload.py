"""Story: more requests than a server of models can answer in time: those that it takes are answered, the others are told at once when to come again."""
import collections
import concurrent.futures
import threading
import time

import pytest

from conftest import wait_until
from serving_story import Server, by_torch, trained  # noqa: F401

SECONDS = 0.4  # that the model takes for an image


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One worker, which answers five images in the time that a request has."""
    folder = tmp_path_factory.mktemp("slow")
    by_torch("slow", folder, SECONDS)
    with Server(tmp_path_factory.mktemp("server"), [f"slow={folder}"], "--workers", "1", "--deadline", "2000", "--max-latency", "1") as running:
        yield running


def storm(server, count=16):
    """So many requests at the same time: [(when it was answered, answer)], in the order of the answers."""
    begin, said = threading.Barrier(count), []

    def ask(_):
        begin.wait()
        answer = server.predict("slow")
        said.append((time.monotonic(), answer))
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(ask, range(count)))
    return said


def refused_in_a_storm(server):
    """A storm in which some are refused: the first one, unless something else keeps the requests apart."""
    def refused():
        answers = storm(server)
        return any(answer.status == 429 for _, answer in answers) and answers
    return wait_until(refused, 120, "a request is refused")


def test_who_is_refused_is_told_when_to_come_again_and_the_others_are_answered(server):
    answers = [answer for _, answer in refused_in_a_storm(server)]
    assert {answer.status for answer in answers} <= {200, 429}
    for answer in answers:
        if answer.status == 200:
            assert answer.json()["predictions"][0]["class"] == "slow"
        else:
            assert answer.refusal(429)
            assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert server.predict("slow").status in (200, 429)
    wait_until(lambda: server.predict("slow").status == 200, 60, "it answers again")


def test_refusals_are_counted(server):
    def refused():
        return sum(value for (name, labels), value in server.metrics().items() if name == "tutti_score_requests_total" and 'outcome="too_late"' in labels)
    before = refused()
    told = sum(answer.status == 429 for _, answer in refused_in_a_storm(server))
    wait_until(lambda: refused() - before >= told, 30, lambda: f"{told} more than {before} were refused: {refused()}")


def test_health_and_metrics_are_answered_meanwhile(server):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(storm, server)
        while not running.done():
            assert server.ask("/v2/health/ready").status == 200 and server.ask("/metrics").status == 200
        running.result()


def test_who_is_refused_is_told_so_before_the_answer_that_keeps_it_waiting(server):
    """Of several storms one at least shows it: in others this machine may stand still."""
    def shown():
        answers = storm(server)
        first = {status: min((at for at, answer in answers if answer.status == status), default=None) for status in (200, 429)}
        return None not in first.values() and first[429] < first[200]
    wait_until(shown, 120, "a refusal comes before the first answer")


def resident(server):
    """Bytes of memory that the server has."""
    return server.metrics()[("process_resident_memory_bytes", "")]


def test_a_minute_of_overload_leaves_memory_flat_and_every_request_answered(trained, tmp_path):  # noqa: F811
    with Server(tmp_path, [f"cifar={trained}"], "--deadline", "200") as server:
        def ask_until(end):
            statuses = collections.Counter()
            while time.monotonic() < end:
                statuses[server.predict("cifar").status] += 1
            return statuses

        def overload(seconds, clients=64):
            end = time.monotonic() + seconds
            with concurrent.futures.ThreadPoolExecutor(clients) as pool:
                return sum(pool.map(ask_until, [end] * clients), collections.Counter())
        overload(10)
        before = resident(server)
        statuses = overload(60)
        assert set(statuses) <= {200, 429} and statuses[200] > 0, statuses
        assert resident(server) < 1.1 * before, (before, resident(server), statuses)
        counted = {labels: value for (name, labels), value in server.metrics().items() if name == "tutti_score_images_waiting"}
        assert set(counted.values()) == {0}, counted


def test_two_models_under_load_get_half_of_the_time_each(tmp_path):
    for name, seconds in (("quick", 0.02), ("slow", 0.1)):
        by_torch("slow", tmp_path / name, seconds)
    with Server(tmp_path, [tmp_path / "quick", tmp_path / "slow"], "--workers", "1") as server:
        end = time.monotonic() + 20

        def keep_asking(name):
            while time.monotonic() < end:
                assert server.predict(name).status == 200
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(keep_asking, ["quick", "slow"] * 8))
        used = {labels.split('"')[1]: value for (name, labels), value in server.metrics().items() if name == "tutti_score_batch_seconds_sum"}
        assert 0.8 < used["quick"] / used["slow"] < 1.25, used
