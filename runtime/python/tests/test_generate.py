"""Answers: one, many, streamed, chats, scores."""

import math
import threading

import pytest

import mlxcel

PROMPT = "And it came to pass"


def test_an_answer_is_whole(engine):
    answer = engine.generate(PROMPT, max_tokens=12, logprobs=2)
    assert answer.finish_reason == "length"
    assert len(answer.tokens) == 12
    assert engine.decode(engine.encode(PROMPT) + answer.tokens) == PROMPT + answer.text
    assert answer.timings.prompt_tokens + answer.timings.cached_tokens == len(engine.encode(PROMPT))
    # The most likely token was taken.
    for token, logprobs in zip(answer.tokens, answer.logprobs):
        assert logprobs.top[0][0] == token
        assert logprobs.top[0][1] == pytest.approx(logprobs.token)
    assert "finish_reason='length'" in repr(answer)


def test_many_prompts_give_what_each_gives_alone(engine):
    prompts = [f"{number} {PROMPT}" for number in range(300)]
    answers = engine.generate(prompts, max_tokens=3)
    assert len(answers) == 300
    for index in (0, 150, 299):
        assert answers[index].tokens == engine.generate(prompts[index], max_tokens=3).tokens
    assert engine.generate([], max_tokens=3) == []


def test_tokens_are_a_prompt(engine):
    tokens = engine.encode(PROMPT)
    assert engine.generate(tokens, max_tokens=4).tokens == engine.generate(PROMPT, max_tokens=4).tokens
    both = engine.generate([tokens, PROMPT], max_tokens=4)
    assert both[0].tokens == both[1].tokens
    numpy = pytest.importorskip("numpy")
    for kind in ("int64", "uint32"):
        array = numpy.array(tokens, kind)
        assert engine.generate(array, max_tokens=4).tokens == both[0].tokens
        assert engine.generate([array, list(array)], max_tokens=4)[1].tokens == both[0].tokens


def test_a_stream_has_the_same_text(engine):
    whole = engine.generate(PROMPT, max_tokens=16)
    stream = engine.stream(PROMPT, max_tokens=16)
    assert stream.answer is None
    pieces = list(stream)
    assert "".join(piece.text for piece in pieces) == whole.text
    assert [piece.token for piece in pieces if piece.token is not None] == whole.tokens
    assert stream.answer.text == whole.text
    assert list(stream) == []


def test_a_stop_text_ends_an_answer(engine):
    answer = engine.generate(PROMPT, max_tokens=64, stop=" the LORD")
    assert answer.finish_reason == "stop"
    assert "LORD" not in answer.text
    assert engine.generate(PROMPT, max_tokens=64, stop=[" the LORD", "angel"]).text.endswith("the ")


def test_a_seed_repeats_an_answer(engine):
    draw = lambda seed: engine.generate(PROMPT, max_tokens=16, temperature=1.0, seed=seed).tokens
    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in range(4)}) > 1


def test_a_cancelled_stream_ends(engine):
    most = engine.context - 64
    stream = engine.stream(PROMPT, max_tokens=most, ignore_eos=True)
    next(stream)
    stream.cancel()
    assert len(list(stream)) < most
    assert stream.answer.finish_reason == "cancelled"


def test_grammars(engine):
    assert engine.generate("The year is ", regex="[0-9]{4}", max_tokens=20).text.isdigit()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert engine.generate("x", json_schema=schema, max_tokens=60).text.startswith("{")
    assert engine.generate("x", grammar='start: "yes" | "no"', max_tokens=9).text in ("yes", "no")


def test_chats(engine):
    messages = [{"role": "user", "content": "Who are you?"}]
    answer = engine.chat(messages, max_tokens=8)
    parts = [{"role": "user", "content": [{"type": "text", "text": "Who are you?"}]}]
    assert engine.chat(parts, max_tokens=8).tokens == answer.tokens
    text = "".join(piece.text for piece in engine.chat_stream(messages, max_tokens=8))
    assert text == answer.text


def test_scores_are_the_log_probabilities_of_answers(engine):
    answer = engine.generate(PROMPT, max_tokens=8, logprobs=3)
    scores = engine.score(answer.tokens, context=PROMPT, top=3)
    assert len(scores) == 8
    for score, logprobs in zip(scores, answer.logprobs):
        assert score.token == pytest.approx(logprobs.token, abs=1e-4)
        assert [token for token, _ in score.top] == [token for token, _ in logprobs.top]
    alone = engine.score(PROMPT)
    assert len(alone) == len(engine.encode(PROMPT)) - 1
    assert all(score.token <= 0 and math.isfinite(score.token) for score in alone)


def test_threads_share_an_engine(engine):
    expected = engine.generate(PROMPT, max_tokens=24).tokens
    found = [None] * 8

    def ask(index):
        found[index] = engine.generate(PROMPT, max_tokens=24).tokens

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_a_list_waits_for_places_that_others_have(demo):
    engine = mlxcel.Engine(demo, queue=2)
    others = []
    with pytest.raises(mlxcel.QueueFullError):
        while True:
            others.append(engine.stream(PROMPT, max_tokens=60, ignore_eos=True))
    answers = engine.generate([PROMPT] * 5, max_tokens=2)
    assert [len(answer.tokens) for answer in answers] == [2] * 5
    assert all(len(list(stream)) >= 60 for stream in others)


def test_embeddings(encoder):
    numpy = pytest.importorskip("numpy")
    texts = ["A cat sleeps.", "A dog runs.", "A cat sleeps."]
    rows = encoder.embed(texts)
    assert rows.shape == (3, encoder.width) and rows.dtype == numpy.float32
    assert (rows[0] == rows[2]).all() and (rows[0] != rows[1]).any()
    assert (encoder.embed(texts[1]) == rows[1]).all()
    assert encoder.embed([]).shape == (0, encoder.width)
    with pytest.raises(mlxcel.RequestError, match="does not continue them"):
        encoder.generate("a")


def test_facts(engine, encoder):
    assert engine.context >= 512 and engine.width is None and engine.vocab > 1000
    assert engine.device.startswith("local-") and engine.target.startswith("cpu")
    assert encoder.width > 0
