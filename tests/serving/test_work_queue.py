"""WorkQueue: turns, batches, and what happens when it is closed or a request is taken back."""

import threading

import pytest
from patience import PATIENCE

from kenmesh_hf.serving.work_queue import ClientQueueFull, QueueFull, WorkQueue


class Recorder:
    """A tagger that notes its batches and answers with the articles' own names; the gate holds it back."""

    def __init__(self):
        self.batches = []
        self.started, self.gate = threading.Event(), threading.Event()

    def __call__(self, articles, **options):
        self.started.set()
        assert self.gate.wait(PATIENCE)
        self.batches.append(([article["title"] for article in articles], options))
        return [[{"ui": article["title"]}] for article in articles]


@pytest.fixture
def tagger():
    return Recorder()


@pytest.fixture
def queue(tagger):
    """A queue whose thread is busy with one article, so that what follows waits."""
    queue = WorkQueue(tagger, batch_size=3, size=10, client_size=8)
    queue.submit("somebody", rows("first"), {})
    assert tagger.started.wait(PATIENCE)
    yield queue
    tagger.gate.set()
    queue.close()


def rows(*titles):
    return [{"title": title} for title in titles]


def result(job):
    return [tags[0]["ui"] for tags in job.future.result(PATIENCE)]


def test_clients_take_turns_however_much_one_sends(queue, tagger):
    greedy = queue.submit("greedy", rows(*"abcdef"), {})
    modest = queue.submit("modest", rows("x", "y"), {})
    tagger.gate.set()
    assert result(greedy) == list("abcdef") and result(modest) == ["x", "y"]
    assert [batch for batch, _ in tagger.batches] == [["first"], ["a", "x", "b"], ["y", "c", "d"], ["e", "f"]]


def test_only_equal_options_share_a_batch_and_nobody_is_left_behind(queue, tagger):
    many = [queue.submit(f"client {n}", rows(str(n)), {"top_k": n % 2}) for n in range(6)]
    tagger.gate.set()
    assert [result(job) for job in many] == [[str(n)] for n in range(6)]
    assert tagger.batches[1:] == [(["0", "2", "4"], {"top_k": 0}), (["1", "3", "5"], {"top_k": 1})]


def test_room_is_limited_for_one_client_and_for_all(queue):
    queue.submit("a", rows(*"12345678"), {})
    with pytest.raises(ClientQueueFull):
        queue.submit("a", rows("9"), {})
    queue.submit("b", rows("1", "2"), {})
    with pytest.raises(QueueFull):
        queue.submit("c", rows("1"), {})
    assert queue.waiting == 10


def test_a_request_that_is_taken_back_leaves_room_and_is_not_tagged(queue, tagger):
    gone = queue.submit("a", rows(*"12345678"), {})
    assert gone.future.cancel()
    job = queue.submit("a", rows("kept"), {})
    tagger.gate.set()
    assert result(job) == ["kept"]
    assert [batch for batch, _ in tagger.batches] == [["first"], ["kept"]]


def test_closing_tells_those_who_wait(queue, tagger):
    job = queue.submit("a", rows("late"), {})
    closing = threading.Thread(target=queue.close)
    closing.start()
    assert isinstance(job.future.exception(PATIENCE), QueueFull)
    tagger.gate.set()
    closing.join(PATIENCE)
    assert not queue.alive and [batch for batch, _ in tagger.batches] == [["first"]]
    with pytest.raises(QueueFull):
        queue.submit("a", rows("later"), {})
