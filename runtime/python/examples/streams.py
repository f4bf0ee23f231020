"""Answers many prompts at a time with asyncio. The engine computes them together.

    python streams.py demo.bundle
"""

import asyncio
import sys

import mlxcel


async def show(engine: mlxcel.Engine, number: int, prompt: str) -> None:
    text = ""
    async for piece in engine.stream(prompt, max_tokens=16):
        text += piece.text
    print(f"{number}: {prompt}{text}")


async def main() -> None:
    engine = mlxcel.Engine(sys.argv[1], cache_size="64MiB")
    prompts = ["In the beginning", "And the LORD said", "Blessed are", "And he went"]
    await asyncio.gather(*(show(engine, number, prompt) for number, prompt in enumerate(prompts)))
    first = await engine.generate_async(prompts[0], max_tokens=16)
    print(first.finish_reason, len(first.tokens))


asyncio.run(main())
