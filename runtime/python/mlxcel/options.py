"""The arguments that several methods take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

Message = Mapping[str, Any]
"""A message of a chat as OpenAI's API has it: `{"role": "user", "content": "Hello"}`."""

Prompt = str | Sequence[int]
"""A text, or its tokens."""

Prompts = Sequence[str] | Sequence[Sequence[int]] | Sequence[Prompt]
"""Several of them."""


class GenerateOptions(TypedDict, total=False):
    """What is asked of an answer. Without sampling options, the most likely token is taken always."""

    max_tokens: int | None
    """The most tokens: 128 for a text, and as many as there is room for in a chat."""
    temperature: float | None
    """Divides the logits. 0 takes the most likely token."""
    top_k: int | None
    """Draws among so many of the most likely tokens."""
    top_p: float | None
    """Draws among the most likely tokens whose probabilities add up to this."""
    min_p: float | None
    """Draws among tokens with at least this share of the best one's probability."""
    seed: int | None
    """The same seed draws the same tokens."""
    stop: str | Sequence[str] | None
    """Texts before which the answer ends."""
    ignore_eos: bool | None
    """Goes on after tokens that end a text."""
    logprobs: int | None
    """Adds log-probabilities to every token, and those of so many most likely ids."""
    logit_bias: Mapping[int, float] | None
    """Added to the logits of tokens."""
    presence_penalty: float | None
    frequency_penalty: float | None
    repetition_penalty: float | None
    json_schema: Mapping[str, Any] | str | None
    """The answer is JSON that this schema accepts."""
    regex: str | None
    """This regular expression matches the answer as a whole."""
    grammar: str | None
    """The answer is a text of this grammar, in llguidance's form of Lark."""
    speculate: bool | None
    """Guesses tokens from the text and verifies several at once. The answer stays the same."""
