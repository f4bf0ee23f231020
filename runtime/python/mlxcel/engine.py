"""A loaded model."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from ._native import Answer, NativeEngine, TokenLogprobs
from .errors import RequestError
from .options import GenerateOptions, Message, Prompt, Prompts
from .stream import Stream

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Unpack

_LARGEST_ID = 2**32 - 1


class Engine:
    """A bundle's model on a device of this machine. Any thread may use it, and requests share the device.

    Args:
        bundle: a bundle's folder, its name in the store, or `demo`, which comes with wheels.
        device: `auto`, `local-task`, `local-sync`, `cuda`, `cuda:1`, `vulkan` or `vulkan:1`.
        threads: threads of the device `local-task`; one for each physical core if it is None.
        cache_size: the memory of the cache, in bytes or as in `"4GiB"`; room for one context if it is None.
        context: tokens of context, at most the bundle's.
        queue: requests that may wait. Others raise QueueFullError, except in `generate` and `chat` with many prompts.
        weights: a checkpoint's folder or file, for bundles without weights.
        require_signature: the minisign key that must have signed the bundle: a public key, or its file.
        store: the store's folder; `$MLXCEL_STORE`, or the default, if it is None.

    Raises:
        BundleError: there is no such bundle, or it is damaged.
        SignatureError: it is not signed by the key.
        DeviceError: none of its targets runs on the device.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str],
        *,
        device: str = "auto",
        threads: int | None = None,
        cache_size: int | str | None = None,
        context: int | None = None,
        queue: int = 256,
        weights: str | os.PathLike[str] | None = None,
        require_signature: str | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        place = {"bundle": bundle, "store": store, "require_signature": require_signature}
        self._native = NativeEngine(
            place,
            {"device": device, "threads": threads},
            context=context,
            cache_size=cache_size,
            queue=queue,
            weights=weights,
        )
        self._facts = self._native.facts()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._facts["model"]

    @property
    def digest(self) -> str:
        """The digest of the bundle's manifest, which names all of its files."""
        return self._facts["digest"]

    @property
    def target(self) -> str:
        """The target of the bundle that runs."""
        return self._facts["target"]

    @property
    def device(self) -> str:
        """The device, as in `local-task, 2 threads`."""
        return self._facts["device"]

    @property
    def context(self) -> int:
        """The most tokens of a request: the model's context, or what the cache has room for."""
        return self._facts["context"]

    @property
    def vocab(self) -> int:
        """The number of token ids."""
        return self._facts["vocab"]

    @property
    def width(self) -> int | None:
        """The numbers of an embedding; None for a model that continues texts."""
        return self._facts["width"]

    def __repr__(self) -> str:
        return f"<mlxcel.Engine {self.model} on {self.device}>"

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the engine and frees its memory. Answers that are not complete end."""
        self._native.close()

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Returns the tokens of a text. `special` adds those that the tokenizer adds, usually one at the start."""
        return self._native.encode(text, special)

    def decode(self, tokens: Sequence[int]) -> str:
        """Returns the text of tokens, without special ones."""
        return self._native.decode(list(tokens))

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Returns the tokens of a chat, rendered by the model's own template.

        Raises:
            RequestError: the model has no template, or it refuses the chat.
        """
        variables = dict(template_variables or {})
        return self._native.encode_chat(
            _json("messages", [_plain(message) for message in messages]),
            _json("tools", list(tools)),
            _json("template_variables", variables),
        )

    # A str is a sequence of them, too.
    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prompt: Prompt, **options: Unpack[GenerateOptions]
    ) -> Answer: ...
    @overload
    def generate(self, prompt: Prompts, **options: Unpack[GenerateOptions]) -> list[Answer]: ...
    def generate(
        self, prompt: Prompt | Prompts, **options: Unpack[GenerateOptions]
    ) -> Answer | list[Answer]:
        """Continues a text, or each of a list of texts. A text can be given as tokens.

        Waits for the answers. Other Python threads run meanwhile, and Ctrl-C ends the requests.

        Raises:
            RequestError: a prompt or an option is refused, before anything runs.
        """
        prompts, is_one = self._prompts(prompt)
        answers = self._native.generate(prompts, False, options)
        return answers[0] if is_one else answers

    def stream(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Stream:
        """Continues a text, piece by piece: for `for`, or for `async for`."""
        return Stream(self._native.stream(self._tokens(prompt), False, options))

    async def generate_async(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Answer:
        """Continues a text without holding up the event loop. Cancelling the task ends the request."""
        return await self.stream(prompt, **options)._finish()

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_variables: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Answer:
        """Answers a chat.

        Args:
            messages: the chat so far, as OpenAI's API has it.
            tools: functions that the model may call. The answer has its calls as the model writes them.
            template_variables: variables of this model's template, such as `enable_thinking`.
        """
        tokens = self.encode_chat(messages, tools=tools, template_variables=template_variables)
        return self._native.generate([tokens], True, options)[0]

    def chat_stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_variables: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """Answers a chat, piece by piece."""
        tokens = self.encode_chat(messages, tools=tools, template_variables=template_variables)
        return Stream(self._native.stream(tokens, True, options))

    async def chat_async(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_variables: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Answer:
        """Answers a chat without holding up the event loop."""
        variables = template_variables
        stream = self.chat_stream(messages, tools=tools, template_variables=variables, **options)
        return await stream._finish()

    def embed(self, text: Prompt | Prompts) -> numpy.ndarray:
        """Returns the embedding of a text, or a matrix with one in each row for a list of texts, in float32."""
        import numpy

        texts, is_one = self._prompts(text)
        rows = numpy.frombuffer(bytearray(self._native.embed(texts)), numpy.float32)
        rows = rows.reshape(len(texts), self.width or 0)
        return rows[0] if is_one else rows

    def score(
        self, text: Prompt, *, context: Prompt | None = None, top: int = 0
    ) -> list[TokenLogprobs]:
        """Returns the log-probability of each token of a text, given those before it.

        The first token of a text has none. With a `context`, all tokens of the text have one: how likely the text is as its
        continuation.

        Args:
            top: how many of the most likely ids to add to each token.
        """
        if context is None:
            return self._native.score(self._tokens(text), 1, top)
        before = self._tokens(context)
        after = self.encode(text, special=False) if isinstance(text, str) else self._tokens(text)
        return self._native.score(before + after, len(before), top)

    def _prompts(self, prompt: Prompt | Prompts) -> tuple[list[list[int]], bool]:
        """Returns the tokens of each prompt, and whether there is one, not a list of them."""
        if _is_one(prompt):
            return [self._tokens(prompt)], True
        return [self._tokens(one) for one in prompt], False

    def _tokens(self, prompt: Any) -> list[int]:
        if isinstance(prompt, str):
            return self.encode(prompt)
        if isinstance(prompt, (bytes, Mapping)) or not hasattr(prompt, "__iter__"):
            raise TypeError(f"prompt: found {prompt!r:.80}, expected a str or a list of token ids")
        return [_token(token) for token in prompt]


def _is_one(prompt: Prompt | Prompts) -> bool:
    """Returns whether it is one prompt, and not a list of prompts."""
    if isinstance(prompt, str):
        return True
    if not isinstance(prompt, Sequence) and not hasattr(prompt, "__array__"):
        raise TypeError(f"prompt: found {prompt!r:.80}, expected a str, token ids, or a list of those")
    return len(prompt) > 0 and not isinstance(prompt[0], (str, Sequence)) and not hasattr(prompt[0], "__len__")


def _token(token: Any) -> int:
    # int() would take 1.5 for 1, and "1" too.
    try:
        number = operator.index(token)
    except TypeError:
        raise TypeError(f"prompt: found the token {token!r:.80}, expected integers") from None
    # The native part compares ids with the vocabulary, and has no others.
    if not 0 <= number <= _LARGEST_ID:
        raise RequestError(
            f"prompt: found the token {number}, expected 0 to {_LARGEST_ID}",
            found=f"the token {number}",
            expected=f"0 to {_LARGEST_ID}",
            hint="give ids of the model's own tokenizer",
        )
    return number


def _plain(message: Message) -> dict[str, Any]:
    """Returns a message whose content is a text, also where it was given in parts."""
    if not isinstance(message, Mapping):
        raise RequestError(
            f"messages: found {message!r:.80}, expected dicts with role and content",
            found=repr(message)[:80],
            expected="dicts with role and content",
        )
    plain = dict(message)
    content = plain.get("content")
    if isinstance(content, list):
        plain["content"] = "".join(_part(part) for part in content)
    return plain


def _part(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") == "text":
        return str(part.get("text", ""))
    raise RequestError(
        f"messages: found the part {part!r:.80}, expected parts of the type text",
        found=repr(part)[:80],
        expected="parts of the type text",
    )


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise RequestError(f"{name}: {error}, expected what JSON can have") from error
