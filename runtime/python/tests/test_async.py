"""Answers in event loops."""

import asyncio

import pytest

import mlxcel

PROMPT = "And it came to pass"


def test_streams_of_a_loop_run_together(engine):
    async def read(number):
        return [piece.text async for piece in engine.stream(f"{number} {PROMPT}", max_tokens=20)]

    async def all_of_them():
        return await asyncio.gather(*(read(number) for number in range(32)))

    for number, pieces in enumerate(asyncio.run(all_of_them())):
        assert "".join(pieces) == engine.generate(f"{number} {PROMPT}", max_tokens=20).text


def test_an_answer_is_awaited(engine):
    async def ask():
        first, second = await asyncio.gather(
            engine.generate_async(PROMPT, max_tokens=9),
            engine.chat_async([{"role": "user", "content": "Hello"}], max_tokens=9),
        )
        return first, second

    first, second = asyncio.run(ask())
    assert first.tokens == engine.generate(PROMPT, max_tokens=9).tokens
    assert second.tokens == engine.chat([{"role": "user", "content": "Hello"}], max_tokens=9).tokens


def test_a_cancelled_task_ends_its_request(engine):
    async def ask():
        stream = engine.stream(PROMPT, max_tokens=450, ignore_eos=True)

        async def read():
            async for _ in stream:
                # Its next wait is cancelled.
                task.cancel()

        task = asyncio.create_task(read())
        with pytest.raises(asyncio.CancelledError):
            await task
        while stream.answer is None:
            async for _ in stream:
                pass
        return stream.answer

    answer = asyncio.run(ask())
    assert answer.finish_reason in ("cancelled", "length")
    assert answer.finish_reason == "cancelled" or len(answer.tokens) == 450


def running_and_queued(engine):
    """Returns two streams, of which the second one waits for the first: each needs most of the cache."""
    options = {"max_tokens": engine.context - 64, "ignore_eos": True}
    return [engine.stream(PROMPT, **options) for _ in range(2)]


def test_a_cancelled_wait_ends_a_request_that_is_queued(demo):
    async def ask():
        with mlxcel.Engine(demo) as engine:
            running, queued = running_and_queued(engine)
            queued.__anext__().cancel()
            pieces = [piece async for piece in queued]
            running.cancel()
            return pieces, queued.answer

    pieces, answer = asyncio.run(ask())
    assert (pieces, answer.finish_reason, answer.tokens) == ([], "cancelled", [])


def test_one_read_of_a_stream_at_a_time(demo):
    async def ask():
        with mlxcel.Engine(demo) as engine:
            running, queued = running_and_queued(engine)
            first = queued.__anext__()
            with pytest.raises(mlxcel.RequestError) as error:
                queued.__anext__()
            assert error.value.found == "a second read while another one waits"
            assert error.value.expected == "one read at a time" and error.value.hint
            # The first one has its piece nonetheless, and the next read the next one.
            running.cancel()
            pieces = [await first, await anext(queued)]
            queued.cancel()
            return [piece.token for piece in pieces], engine.generate(PROMPT, max_tokens=2).tokens

    found, expected = asyncio.run(ask())
    assert found == expected


def test_a_failure_reaches_the_loop(demo):
    async def ask():
        engine = mlxcel.Engine(demo, queue=8)
        streams = [engine.stream(PROMPT, max_tokens=450, ignore_eos=True) for _ in range(4)]
        waiting = [asyncio.create_task(anext_of(stream)) for stream in streams]
        last = asyncio.create_task(engine.generate_async(PROMPT, max_tokens=450, ignore_eos=True))
        await asyncio.sleep(0)
        engine.close()
        return await asyncio.gather(*waiting, last, return_exceptions=True)

    async def anext_of(stream):
        return [piece async for piece in stream]

    *streams, last = asyncio.run(ask())
    assert all(isinstance(found, (list, mlxcel.ClosedError)) for found in streams)
    assert isinstance(last, mlxcel.ClosedError) or last.finish_reason in ("cancelled", "context", "length")


def test_other_tasks_run_meanwhile(engine):
    async def ask():
        answering = asyncio.create_task(engine.generate_async(PROMPT, max_tokens=450, ignore_eos=True))
        for _ in range(20):
            await asyncio.sleep(0)
        is_complete = answering.done()
        answering.cancel()
        return is_complete

    assert not asyncio.run(ask())


def test_loops_one_after_another(engine):
    async def ask():
        return (await engine.generate_async(PROMPT, max_tokens=3)).tokens

    assert asyncio.run(ask()) == asyncio.run(ask())
