"""Chats through OpenAI's own client."""

import asyncio

import openai
import pytest

GREEDY = {"temperature": 0, "max_completion_tokens": 24}
ASK = [{"role": "user", "content": "And it came to pass"}]


@pytest.fixture
def chat(client, model):
    return lambda **more: client.chat.completions.create(**{"model": model, "messages": ASK, **GREEDY, **more})


def test_a_whole_answer(chat, model):
    answer = chat()
    assert (answer.object, answer.model, len(answer.choices)) == ("chat.completion", model, 1)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.message.tool_calls is None and choice.message.refusal is None and choice.logprobs is None
    assert choice.finish_reason == "length"
    usage = answer.usage
    assert usage.completion_tokens == 24
    assert usage.total_tokens == usage.prompt_tokens + 24
    assert answer.system_fingerprint.startswith("fp_")
    assert answer._request_id


def test_a_stream_is_the_whole_answer_in_parts(chat):
    whole = chat()
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    *parts, last = chunks
    assert parts[0].choices[0].delta.role == "assistant"
    assert "".join(part.choices[0].delta.content or "" for part in parts) == whole.choices[0].message.content
    assert [part.choices[0].finish_reason for part in parts][-1] == "length"
    assert all(part.usage is None for part in parts)
    assert last.choices == [] and last.usage.completion_tokens == 24


def test_the_streaming_helper_of_the_client(chat, client, model):
    # An answer that is cut is an error of the helper.
    text = chat().choices[0].message.content
    with client.chat.completions.stream(model=model, messages=ASK, stop=text[12:15], **GREEDY) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and kinds[-1] == "content.done"
    assert final.choices[0].message.content == text[: text.index(text[12:15])]


def test_a_seed_repeats_an_answer(chat):
    text = lambda seed: chat(temperature=1.5, seed=seed).choices[0].message.content
    assert text(1) == text(1)
    assert len({text(seed) for seed in range(4)}) > 1


def test_several_answers(chat):
    answer = chat(n=3, temperature=1.2, seed=7)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1
    assert answer.usage.completion_tokens == 72
    chunks = [chunk.choices[0] for chunk in chat(n=3, temperature=1.2, seed=7, stream=True)]
    for choice in answer.choices:
        parts = [chunk.delta.content or "" for chunk in chunks if chunk.index == choice.index]
        assert "".join(parts) == choice.message.content


def test_stop_texts_are_not_part_of_the_answer(chat):
    text = chat().choices[0].message.content
    stop = text[8:11]
    for stops in (stop, ["\0", stop]):
        choice = chat(stop=stops).choices[0]
        assert choice.message.content == text[: text.index(stop)]
        assert choice.finish_reason == "stop"


def test_log_probabilities(chat):
    choice = chat(logprobs=True, top_logprobs=3).choices[0]
    entries = choice.logprobs.content
    assert len(entries) == 24
    assert "".join(entry.token for entry in entries) == choice.message.content
    for entry in entries:
        assert bytes(entry.bytes).decode() == entry.token
        assert len(entry.top_logprobs) == 3
        # Greedy: the token is the first of the best.
        assert entry.top_logprobs[0].logprob == entry.logprob <= 0
        values = [top.logprob for top in entry.top_logprobs]
        assert values == sorted(values, reverse=True)
    streamed = [
        entry
        for chunk in chat(logprobs=True, top_logprobs=3, stream=True)
        for choice in chunk.choices
        for entry in (choice.logprobs.content if choice.logprobs else [])
    ]
    assert [entry.logprob for entry in streamed] == [entry.logprob for entry in entries]


def test_biases_and_penalties(chat, client, model):
    entries = chat(logprobs=True, max_completion_tokens=1).choices[0]
    text = chat().choices[0].message.content
    first = client.post("/../tokenize", body={"content": entries.message.content, "model": model}, cast_to=object)
    banned = chat(logit_bias={str(token): -100 for token in first["tokens"]})
    assert not banned.choices[0].message.content.startswith(entries.message.content)
    changed = chat(frequency_penalty=2, presence_penalty=2, max_completion_tokens=24).choices[0].message.content
    assert changed != text


def test_a_conversation_goes_on(chat):
    first = chat().choices[0].message
    # With members that are None, which change nothing.
    messages = [{"role": "system", "content": "Answer."}, *ASK, first.model_dump(), *ASK]
    assert {"audio", "function_call"} <= messages[2].keys()
    again = chat(messages=messages)
    assert again.usage.prompt_tokens > 24
    # Its own beginning is in the prefix cache when it is asked once more.
    once_more = chat(messages=messages)
    assert once_more.choices == again.choices


def test_content_in_parts(chat):
    parts = [{"type": "text", "text": "And it came "}, {"type": "text", "text": "to pass"}]
    assert chat(messages=[{"role": "user", "content": parts}]).usage.prompt_tokens > 4


def test_answers_together_are_the_answers_alone(request, url, model, chat):
    prompts = [[{"role": "user", "content": f"{number} And God said"}] for number in range(12)]
    settings = {"temperature": 0.9, "seed": 3, "max_completion_tokens": 20}
    alone = [chat(messages=prompt, **settings).choices[0].message.content for prompt in prompts]

    async def together():
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key=request.config.getoption("--key")) as client:
            ask = lambda prompt: client.chat.completions.create(model=model, messages=prompt, **settings)
            answers = await asyncio.gather(*map(ask, prompts))
        return [answer.choices[0].message.content for answer in answers]

    assert asyncio.run(together()) == alone


def test_a_client_that_goes_leaves_nothing(chat):
    for _ in range(20):
        with chat(stream=True, max_completion_tokens=400) as stream:
            next(iter(stream))
    assert chat().choices[0].finish_reason == "length"
