"""Answers in a format, and calls of functions, through OpenAI's own client.

The model was trained on neither, so that only the server can keep an answer to its format.
"""

import enum
import json

import jsonschema
import pydantic
import pytest

ASK = [{"role": "user", "content": "And it came to pass"}]


class Kind(enum.Enum):
    city = "city"
    river = "river"


class Place(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=12)
    kind: Kind
    people: int = pydantic.Field(ge=0, le=999)
    tags: list[bool] = pydantic.Field(max_length=3)


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 8},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def chat(client, model):
    def ask(**more):
        settings = {"model": model, "messages": ASK, "temperature": 1, "seed": 11, "max_completion_tokens": 200}
        return client.chat.completions.create(**{**settings, **more})

    return ask


@pytest.mark.parametrize("seed", range(4))
def test_the_client_parses_a_type(client, model, seed):
    answer = client.chat.completions.parse(
        model=model, messages=ASK, response_format=Place, seed=seed, max_completion_tokens=200
    )
    assert isinstance(answer.choices[0].message.parsed, Place)
    assert answer.choices[0].finish_reason == "stop"


def test_any_json(chat):
    # Any JSON object may be long: a wish for its end shortens it.
    answer = chat(response_format={"type": "json_object"}, logit_bias={}, max_completion_tokens=300)
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    else:
        assert answer.choices[0].message.content.lstrip().startswith("{")


def test_a_regular_expression_and_a_grammar(chat):
    for extra, expected in [
        ({"regex": "(yes|no), [a-z]{2,4}"}, r"^(yes|no), [a-z]{2,4}$"),
        ({"grammar": 'start: "A" NUMBER\nNUMBER: /[0-9]{3}/'}, r"^A[0-9]{3}$"),
    ]:
        choice = chat(extra_body=extra).choices[0]
        jsonschema.validate(choice.message.content, {"type": "string", "pattern": expected})
        assert choice.finish_reason == "stop"


def arguments(call, name="get_weather", tool=WEATHER):
    assert call.type == "function" and call.id and call.function.name == name
    found = json.loads(call.function.arguments)
    jsonschema.validate(found, tool["function"]["parameters"])
    return found


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}], ids=["required", "named"]
)
def test_a_call_that_is_required(chat, choice):
    answer = chat(tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False)
    [choice] = answer.choices
    assert choice.finish_reason == "tool_calls"
    [call] = choice.message.tool_calls
    arguments(call)


def test_a_streamed_call(chat):
    call, finish = {"arguments": ""}, None
    for chunk in chat(tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, stream=True):
        [choice] = chunk.choices
        finish = choice.finish_reason or finish
        for delta in choice.delta.tool_calls or []:
            assert delta.index == 0
            if delta.id:
                call |= {"id": delta.id, "name": delta.function.name}
            call["arguments"] += delta.function.arguments or ""
    assert finish == "tool_calls" and call["name"] == "get_weather"
    jsonschema.validate(json.loads(call["arguments"]), WEATHER["function"]["parameters"])


def test_no_call_if_none_is_wanted(chat):
    message = chat(tools=[WEATHER], tool_choice="none", max_completion_tokens=30).choices[0].message
    assert message.tool_calls is None and message.content


@pytest.mark.parametrize("seed", range(3))
def test_what_is_called_freely_is_a_function_of_the_request(chat, seed):
    choice = chat(tools=[WEATHER, TIME], seed=seed, max_completion_tokens=60).choices[0]
    for call in choice.message.tool_calls or []:
        assert call.function.name in ("get_weather", "get_time")
        json.loads(call.function.arguments)


def test_the_result_of_a_call_goes_back(chat):
    call = chat(tools=[WEATHER], tool_choice="required", parallel_tool_calls=False).choices[0].message
    result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "sunny"}
    messages = [*ASK, call.model_dump(exclude_none=True), result]
    answer = chat(messages=messages, tools=[WEATHER], tool_choice="none", max_completion_tokens=10)
    assert answer.choices[0].message.content
