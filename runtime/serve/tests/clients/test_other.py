"""Text completions, models and errors through OpenAI's own client."""

import openai
import pytest

PROMPT = "And it came to pass"


@pytest.fixture
def complete(client, model):
    def ask(prompt=PROMPT, **more):
        settings = {"model": model, "prompt": prompt, "temperature": 0, "max_tokens": 16}
        return client.completions.create(**{**settings, **more})

    return ask


def test_a_continuation(complete):
    answer = complete()
    assert answer.object == "text_completion" and answer.choices[0].finish_reason == "length"
    streamed = "".join(chunk.choices[0].text for chunk in complete(stream=True))
    assert streamed == answer.choices[0].text


def test_several_prompts_and_tokens(complete, client, model):
    tokens = client.post("/../tokenize", body={"content": PROMPT, "add_special": True, "model": model}, cast_to=object)
    alone = complete().choices[0].text
    assert [choice.text for choice in complete([PROMPT, PROMPT]).choices] == [alone, alone]
    assert complete(tokens["tokens"]).choices[0].text == alone


def test_log_probabilities(complete):
    choice = complete(logprobs=2, max_tokens=4).choices[0]
    assert "".join(choice.logprobs.tokens) == choice.text
    assert choice.logprobs.text_offset[0] == 0
    assert all(len(top) == 2 for top in choice.logprobs.top_logprobs)
    assert all(value <= 0 for value in choice.logprobs.token_logprobs)


def test_models(client, models, model):
    assert {item.object for item in models} == {"model"}
    found = client.models.retrieve(model)
    assert (found.id, found.owned_by, found.task) == (model, "mlxcel", "generation")
    assert found.digest.startswith("blake3:") and found.target.startswith("cpu")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "warm"}, "temperature"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"n": 10**6}, "n"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"best_of": 4}, "best_of"),
        ({"suffix": "b"}, "suffix"),
        ({"extra_body": {"no_such_field": 1}}, "no_such_field"),
        ({"stop": [""]}, "stop"),
    ],
)
def test_what_is_refused_is_named(complete, changes, param):
    with pytest.raises(openai.BadRequestError) as caught:
        complete(**changes)
    error = caught.value
    assert error.type == "invalid_request_error" and error.param.startswith(param)


def test_a_prompt_that_is_too_long(complete):
    with pytest.raises(openai.BadRequestError) as caught:
        complete([5] * 100_000)
    assert caught.value.code == "context_length_exceeded"


def test_what_is_not_there(client, complete):
    with pytest.raises(openai.NotFoundError) as caught:
        complete(model="no-such-model")
    assert caught.value.code == "model_not_found" and caught.value.param == "model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="x", input="y")


@pytest.fixture
def embedding(models):
    return next(model.id for model in models if model.task == "embedding")


def test_embeddings(client, embedding):
    texts = ["A cat sits on the mat.", "A kitten lies on a rug.", "Shares fell on Monday."]
    # The client asks for base64 unless it is told otherwise.
    answer = client.embeddings.create(model=embedding, input=texts)
    assert [item.index for item in answer.data] == [0, 1, 2] and answer.usage.total_tokens > 12
    cat, kitten, shares = (item.embedding for item in answer.data)
    dot = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True))
    assert len(cat) == 384 and abs(dot(cat, cat) - 1) < 1e-5
    assert dot(cat, kitten) > 0.5 > dot(cat, shares)
    floats = client.embeddings.create(model=embedding, input=texts[0], encoding_format="float").data[0].embedding
    assert max(abs(x - y) for x, y in zip(cat, floats, strict=True)) < 1e-6


def test_what_an_embedding_does_not_take(client, embedding):
    for more, param in [({"dimensions": 7}, "dimensions"), ({"input": []}, "input"), ({"input": "a " * 5000}, "input")]:
        with pytest.raises(openai.BadRequestError) as caught:
            client.embeddings.create(**{"model": embedding, "input": "a", **more})
        assert caught.value.param == param or caught.value.code == "context_length_exceeded"


def test_the_kind_of_a_model_is_told(client, complete, model, embedding):
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model=model, input="a")
    assert caught.value.param == "model"
    with pytest.raises(openai.BadRequestError) as caught:
        complete(model=embedding)
    assert caught.value.param == "model"
