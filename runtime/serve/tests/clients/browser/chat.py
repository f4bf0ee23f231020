"""Chats with a model: send, stop, regenerate, edit, delete, settings, and what screen readers hear."""

import re

from .driver import (
    World,
    announced,
    ask,
    chat_page,
    ended,
    grows,
    hold_undo,
    received,
    record_speech,
    recorded_speech,
    send,
    settings,
    texts,
    until,
    until_kept,
    until_promised,
    written,
)

CODE = "Some code:\n\n```python\nprint('<b>')\n```\n\nand *more*."

# The label goes after a moment.
NOTE_COPIED = """
() => {
  const note = (changes) => changes.forEach(({ target }) => { window.hasCopied ||= target.ariaLabel === "Copied" });
  new MutationObserver(note).observe(document.body, { subtree: true, attributeFilter: ["aria-label"] });
}
"""


def case_an_answer_streams(world: World):
    page = chat_page(world)
    settings(page, max_tokens=24, temperature=0)
    answer = ask(page, "In the beginning")
    assert len(answer) > 20, answer
    last = page.locator(".message.assistant").last
    assert re.search(r"[\d.,]+ tokens/s", last.text_content()), last.text_content()
    assert re.search(r"first token [\d.]+ (ms|s)", last.text_content())
    assert "24 tokens" in last.text_content() and "prompt " in last.text_content()
    assert "finish reason: length" in last.locator(".notice").text_content()
    assert page.title().startswith("In the beginning")
    assert page.evaluate("document.activeElement.id") == "message"
    assert page.input_value("#message") == ""


def case_a_seed_gives_the_same_answer(world: World):
    page = chat_page(world)
    settings(page, max_tokens=30, temperature=1, seed=7)
    first = ask(page, "And the LORD said")
    page.locator(".message.assistant").get_by_role("button", name="Regenerate").click()
    until(page, "text => document.querySelector('.message.assistant .body').innerText.trim() === text", first)
    ended(page, 2)
    assert texts(page)[-1] == first
    settings(page, seed=8)
    page.locator(".message.assistant").get_by_role("button", name="Regenerate").click()
    ended(page, 2)
    assert texts(page)[-1] != first


def case_settings_are_sent(world: World):
    page = chat_page(world)
    values = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.05,
        "max_tokens": 5,
        "seed": 3,
        "presence_penalty": -0.5,
        "frequency_penalty": 0.5,
        "repetition_penalty": 1.1,
    }
    settings(page, system="Be brief.", **values)
    with page.expect_request("**/v1/chat/completions") as asked:
        ask(page, "Amen")
    body = asked.value.post_data_json
    assert {name: body[name] for name in values} == values
    expected = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Amen"}]
    assert body["messages"] == expected and body["stream_options"] == {"include_usage": True}, body
    assert page.locator("#summary").inner_text() == "10 settings"
    page.click("#summary")
    page.get_by_role("button", name="Use the defaults").click()
    page.fill("#system", "")
    with page.expect_request("**/v1/chat/completions") as asked:
        send(page, "Again")
    page.keyboard.press("Escape")
    assert set(asked.value.post_data_json) == {"model", "messages", "stream", "stream_options"}
    assert asked.value.post_data_json["messages"][1]["role"] == "assistant"


def case_a_wrong_setting_is_not_sent(world: World):
    page = chat_page(world)
    settings(page, temperature=3)
    send(page, "Amen")
    assert page.locator(".message").count() == 0
    assert page.evaluate("document.activeElement.id") == "sampling-temperature"
    assert page.locator("#sampling-temperature-error").inner_text() == "At most 2"
    page.fill("#sampling-temperature", "1")
    settings(page, max_tokens=4)
    ask(page, "Amen")


def case_an_edit_goes_on_from_there(world: World):
    page = chat_page(world)
    settings(page, max_tokens=8)
    for text in ["one", "two", "three"]:
        ask(page, text)
    before = texts(page)
    page.locator(".message.user").nth(1).hover()
    page.locator(".message.user").nth(1).get_by_role("button", name="Edit and send again").click()
    area = page.get_by_label("Text of the message")
    assert area.input_value() == "two" and area.evaluate("area => area === document.activeElement")
    area.fill("four")
    with page.expect_request("**/v1/chat/completions") as asked:
        area.press("Enter")
    hold_undo(page)
    ended(page, 4)
    assert [message["content"] for message in asked.value.post_data_json["messages"]][::2] == ["one", "four"]
    assert texts(page)[:3] == [*before[:2], "four"]
    page.get_by_role("button", name="Undo").click()
    assert texts(page) == before
    # What the model said can be changed, too, and nothing is sent.
    page.locator(".message.assistant").first.hover()
    page.locator(".message.assistant").first.get_by_role("button", name="Edit").click()
    page.get_by_label("Text of the message").fill("**said**")
    page.get_by_role("button", name="Save").click()
    assert page.locator(".message.assistant").first.locator("strong").text_content() == "said"
    assert page.locator(".message").count() == 6


def case_a_message_is_deleted_and_comes_back(world: World):
    page = chat_page(world)
    settings(page, max_tokens=8)
    ask(page, "one")
    before = texts(page)
    page.locator(".message.assistant").get_by_role("button", name="Delete").click()
    assert texts(page) == ["one"]
    page.get_by_role("button", name="Undo").click()
    assert texts(page) == before
    page.locator(".message.assistant").get_by_role("button", name="Delete").click()
    # Without a text, what is last is answered.
    page.press("#message", "Enter")
    until(page, "() => document.querySelectorAll('.message').length === 2")
    ended(page, 2)


def case_an_edit_waits_for_the_answer(world: World):
    page = chat_page(world)
    settings(page, max_tokens=8)
    ask(page, "one")
    with written(world, page, text="word " * 100, limit=50):
        send(page, "two")
        grows(page)
        page.locator(".message.user").first.get_by_role("button", name="Edit and send again").click()
        area = page.get_by_label("Text of the message")
        area.fill("three")
        area.press("Enter")
        page.get_by_text("Stop the answer first.").wait_for()
        assert area.input_value() == "three" and page.locator(".message").count() == 4
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector("#send", state="visible")
    area.press("Enter")
    ended(page, 2)
    assert texts(page)[0] == "three"


def case_undo_keeps_what_came_later(world: World):
    page = chat_page(world)
    with written(world, page, text="First."):
        ask(page, "one")
    page.locator(".message.assistant").get_by_role("button", name="Delete").click()
    hold_undo(page)
    with written(world, page, text="Second.") as writer:
        ask(page, "two")
        # Templates that want the roles to take turns take this, too.
        assert writer.bodies[-1]["messages"] == [{"role": "user", "content": "one\n\ntwo"}]
    page.get_by_role("button", name="Undo").click()
    before = ["one", "First.", "two", "Second."]
    assert texts(page) == before
    page.locator(".message.user").first.get_by_role("button", name="Edit and send again").click()
    page.get_by_label("Text of the message").fill("three")
    with written(world, page, text="Third."):
        page.get_by_label("Text of the message").press("Enter")
        hold_undo(page)
        ended(page, 2)
    with written(world, page, text="Fourth."):
        ask(page, "four")
    page.get_by_role("button", name="Undo").click()
    assert texts(page) == [*before, "four", "Fourth."]


def case_escape_stops(world: World):
    page = chat_page(world)
    for stop in [lambda: page.keyboard.press("Escape"), lambda: page.get_by_role("button", name="Stop").click()]:
        with written(world, page, text="word " * 4000, pace=0.01) as writer:
            send(page, "go on")
            grows(page)
            assert page.get_by_role("button", name="Stop").is_visible()
            stop()
            ended(page)
            assert writer.gone.wait(60), "the request still runs"
        last = page.locator(".message.assistant").last
        assert "Stopped." in last.text_content() and "word word" in last.text_content()
        count = len(texts(page)[-1])
        page.wait_for_timeout(200)
        assert len(texts(page)[-1]) == count
    settings(page, max_tokens=4)
    ask(page, "and now")


def case_code_is_copied(world: World):
    page = chat_page(world, permissions=["clipboard-read", "clipboard-write"])
    with written(world, page, text=CODE):
        ask(page, "code")
    assert page.locator(".code-head span").text_content() == "python"
    page.evaluate(NOTE_COPIED)
    page.get_by_role("button", name="Copy code").click()
    until(page, "() => window.hasCopied")
    assert page.evaluate("navigator.clipboard.readText()") == "print('<b>')"
    page.locator(".message.assistant").get_by_role("button", name="Copy", exact=True).click()
    until_promised(page, "() => navigator.clipboard.readText().then((text) => text.startsWith('Some code'))")
    assert page.evaluate("navigator.clipboard.readText()") == CODE
    with written(world, page, text="```make\nall:\n\tcc a.c\n```"):
        ask(page, "a rule needs its tab")
    page.locator(".message.assistant").last.get_by_role("button", name="Copy code").click()
    until_promised(page, "() => navigator.clipboard.readText().then((text) => text === 'all:\\n\\tcc a.c')")


def case_reasoning_and_calls_are_shown(world: World):
    page = chat_page(world)
    calls = [
        {"tool_calls": [{"index": 0, "id": "a1", "type": "function", "function": {"name": "weather", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"<b>Rome"}'}}]},
    ]
    with written(world, page, text="Sunny.", reasoning="Which <i>city</i> is it?", deltas=calls, finish="tool_calls") as writer:
        ask(page, "weather")
        reasoning = page.locator("details.reasoning")
        assert reasoning.get_attribute("open") is None
        reasoning.locator("summary").click()
        assert reasoning.locator("div").text_content().strip() == "Which <i>city</i> is it?"
        call = page.locator("details.call")
        assert call.locator("summary").text_content() == "Calls weather"
        assert call.locator("pre").text_content() == '{\n  "city": "<b>Rome"\n}'
        assert texts(page)[-1] == "Sunny."
        ask(page, "thanks")
        sent = writer.bodies[-1]["messages"][1]
    assert sent["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "<b>Rome"}'}


def case_the_end_stays_in_view_if_it_is(world: World):
    page = chat_page(world)
    at_end = "() => { const s = document.querySelector('#scroller'); return s.scrollHeight - s.scrollTop - s.clientHeight < 4 }"
    with written(world, page, text="line of words\n\n" * 150, pace=0.004, size=15, limit=100) as writer:
        send(page, "long")
        until(page, "() => document.querySelectorAll('.message.assistant .body p').length === 100")
        until(page, "() => document.querySelector('#scroller').scrollTop > 300")
        until(page, at_end)
        page.mouse.move(600, 300)
        page.mouse.wheel(0, -500)
        page.wait_for_selector("#to-end", state="visible")
        before = page.evaluate("document.querySelector('#scroller').scrollTop")
        writer.go_on()
        ended(page)
        assert page.evaluate("document.querySelector('#scroller').scrollTop") <= before
    page.get_by_role("button", name="Go to the end").click()
    until(page, at_end)
    assert page.locator("#to-end").is_hidden()


def case_answers_are_spoken_once(world: World):
    page = chat_page(world)
    with written(world, page, text="First one.\n\n- a\n- b\n\n```js\nf()\n```\n\nLast one.", pace=0.01, size=3):
        ask(page, "speak")
    said = announced(page)
    assert said[0].endswith(" answers.")
    assert said[1:] == ["First one.", "a\nb", "f()", "Last one."], said
    assert page.locator(".message[aria-busy=true]").count() == 0


def case_answers_are_not_spoken_again(world: World):
    page = chat_page(world)
    record_speech(page)
    blocks = [f"Block {number}." for number in range(80)]
    with written(world, page, text="\n\n".join(blocks), pace=0.01, limit=30) as writer:
        send(page, "speak")
        page.locator("#announcer p", has_text="Block 3.").wait_for(state="attached")
        page.get_by_role("button", name="New chat").click()
        writer.go_on(60)
        page.get_by_role("link", name="speak").click()
        page.wait_for_selector(".message")
        writer.go_on()
        ended(page, 2)
    spoken = [line for line in recorded_speech(page) if line.startswith("Block")]
    # What was written while another chat was shown may be spoken late, and nothing is spoken twice.
    assert len(spoken) == len(set(spoken)) and spoken[:4] == blocks[:4] and spoken[-3:] == blocks[-3:], spoken


def case_a_text_is_continued(world: World):
    page = world.page()
    page.wait_for_selector("#model option", state="attached")
    plain = [name for name in page.locator("#model option").all_text_contents() if name.endswith("(text)")]
    assert plain, "found no model without a chat template"
    page.select_option("#model", label=plain[0])
    assert page.get_by_role("heading", name="Continue a text").is_visible() and page.locator("#message").is_hidden()
    settings(page, max_tokens=20, temperature=0)
    page.fill("#text", "In the beginning God")
    page.press("#text", "Control+Enter")
    page.wait_for_selector("#text-status .stats")
    text = page.input_value("#text")
    assert text.startswith("In the beginning God") and len(text) > 40, text
    assert "20 tokens" in page.locator("#text-status").inner_text()
    assert any(line.startswith(text[20:].strip()[:10]) for line in map(str.strip, announced(page))), announced(page)
    settings(page, max_tokens=None)
    with page.expect_request("**/v1/completions") as asked:
        page.get_by_role("button", name="Continue", exact=True).click()
    assert asked.value.post_data_json["prompt"] == text
    page.wait_for_selector("#text-status .stats")
    page.get_by_role("button", name="Undo").click()
    assert page.input_value("#text") == text
    with written(world, page, deltas=[{}] * 4000, pace=0.01) as writer:
        page.press("#text", "Control+Enter")
        page.wait_for_selector("#stop", state="visible")
        received(page, writer)
        page.keyboard.press("Escape")
        page.get_by_text("Stopped.").first.wait_for()
        assert writer.gone.wait(60), "the request still runs"
    until_kept(page, "(chat, text) => chat.text === text", text)
    page.reload()
    page.wait_for_selector("#text-mode", state="visible")
    assert page.input_value("#text") == text


CASES_HERE = [
    case_an_answer_streams,
    case_a_seed_gives_the_same_answer,
    case_settings_are_sent,
    case_a_wrong_setting_is_not_sent,
    case_an_edit_goes_on_from_there,
    case_a_message_is_deleted_and_comes_back,
    case_an_edit_waits_for_the_answer,
    case_undo_keeps_what_came_later,
    case_escape_stops,
    case_code_is_copied,
    case_reasoning_and_calls_are_shown,
    case_the_end_stays_in_view_if_it_is,
    case_answers_are_spoken_once,
    case_answers_are_not_spoken_again,
    case_a_text_is_continued,
]
