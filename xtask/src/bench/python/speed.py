"""Measures the package mlxcel, and prints a line of JSON for each repeat.

    python3 speed.py one BUNDLE THREADS TOKENS
    python3 speed.py many BUNDLE THREADS TOKENS STREAMS PROMPT REPEATS

`one` is the seconds for each token of a stream, from its first token to its last one, those of them in which the engine ran
no step, by its own clock, and those in which a processor ran the thread that reads the stream. `many` is the tokens per
second of all requests together, prompts too: of one call that takes all prompts, where Python waits for the end, and of as
many asynchronous streams.
"""

import asyncio
import json
import random
import sys
import time

import mlxcel


def one(engine, tokens):
    """Returns the seconds for each token of a stream, those outside the engine's steps, and those of this thread."""
    stream, times, reading = None, [], 0.0
    # The first run finds its memory, and is not measured.
    for _ in range(2):
        stream = engine.stream([1], max_tokens=tokens, ignore_eos=True)
        begin = time.thread_time()
        times = [time.perf_counter() for _ in stream]
        reading = time.thread_time() - begin
        if len(times) != tokens:
            sys.exit(f"found {len(times)} pieces, expected one for each of {tokens} tokens")
    seconds = times[-1] - times[0]
    outside = seconds - stream.answer.timings.decode
    return {"seconds": seconds / (tokens - 1), "outside": outside / (tokens - 1), "reading": reading / tokens}


def many(engine, tokens, streams, prompt, repeats):
    """Yields the tokens per second of one call, and of asynchronous streams."""
    numbers = random.Random(0)
    options = {"max_tokens": tokens, "ignore_eos": True}

    def prompts():
        # No prompt begins as another one, so that the cache of prompts helps nobody.
        return [[numbers.randrange(engine.vocab) for _ in range(prompt)] for _ in range(streams)]

    def rate(run):
        given = prompts()
        start = time.perf_counter()
        count = run(given)
        seconds = time.perf_counter() - start
        if count != streams * tokens:
            sys.exit(f"found {count} tokens, expected {streams * tokens}")
        return (count + streams * prompt) / seconds

    def call(given):
        return sum(len(answer.tokens) for answer in engine.generate(given, **options))

    async def read(given):
        stream = engine.stream(given, **options)
        async for _ in stream:
            pass
        return len(stream.answer.tokens)

    async def read_all(given):
        return sum(await asyncio.gather(*[read(each) for each in given]))

    def stream_all(given):
        return asyncio.run(read_all(given))

    rate(call)
    for _ in range(repeats):
        yield {"call": rate(call), "streams": rate(stream_all)}


def main():
    mode, bundle, threads, *numbers = sys.argv[1:]
    numbers = [int(number) for number in numbers]
    options = {"device": "local-task", "threads": int(threads)}
    if mode == "one":
        with mlxcel.Engine(bundle, **options) as engine:
            print(json.dumps(one(engine, *numbers)))
    else:
        # Room for all of them at a time.
        with mlxcel.Engine(bundle, cache_size="2GiB", **options) as engine:
            for row in many(engine, *numbers):
                print(json.dumps(row), flush=True)


main()
