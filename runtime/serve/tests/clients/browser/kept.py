"""Chats that are kept in the browser."""

import json
from pathlib import Path

from .driver import (
    World,
    ask,
    chat_page,
    choose_model,
    ended,
    grows,
    hold_undo,
    record_speech,
    recorded_speech,
    send,
    settings,
    texts,
    until,
    until_kept,
    written,
)

SAVED = 700  # milliseconds after which a change is kept

# Databases that do not open, or that open and cannot be read.
FORBIDDEN = "Object.defineProperty(window, 'indexedDB', { get() { throw new DOMException('no', 'SecurityError') } })"
UNREADABLE = "IDBObjectStore.prototype.getAll = () => { throw new DOMException('damaged', 'UnknownError') }"


def titles(page) -> list[str]:
    return page.locator("#chat-list a").all_text_contents()


def quiet(page):
    """Waits until no chat of the list is being answered, here or in another tab."""
    until(page, "() => document.querySelectorAll('.running').length === 0")


def case_chats_outlive_the_page(world: World):
    page = chat_page(world)
    assert page.locator("#chat-list a").count() == 0 and "#" not in page.url
    settings(page, system="Be brief.", max_tokens=6, seed=1)
    ask(page, "the first chat")
    first = texts(page)
    page.get_by_role("button", name="New chat").click()
    assert texts(page) == [] and page.input_value("#system") == "" and page.input_value("#sampling-seed") == "1"
    ask(page, "the second chat")
    page.fill("#message", "not sent")
    assert titles(page) == ["the second chat", "the first chat"]
    until_kept(page, "(chat) => chat.title === 'the second chat' && chat.messages.at(-1)?.isOpen === false")
    page.reload()
    page.wait_for_selector(".message")
    assert texts(page)[0] == "the second chat"
    page.get_by_role("link", name="the first chat").click()
    until(page, "() => document.querySelector('.message .body').innerText === 'the first chat'")
    assert texts(page) == first, (texts(page), first)
    assert page.input_value("#system") == "Be brief."
    assert page.locator("[aria-current=page]").inner_text() == "the first chat"
    assert "first token" in page.locator(".message.assistant").text_content()
    page.go_back()
    until(page, "() => document.querySelector('.message .body').innerText === 'the second chat'")


def case_chats_are_renamed_and_deleted(world: World):
    page = chat_page(world)
    settings(page, max_tokens=4)
    ask(page, "one")
    page.get_by_role("button", name="New chat").click()
    ask(page, "two")
    page.get_by_role("button", name="Rename two").click()
    page.get_by_label("Name of the chat").fill("<b>deux</b>")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="<b>deux</b>").wait_for()
    assert page.locator("#chat-title").inner_text() == "<b>deux</b>"
    page.get_by_role("button", name="Rename <b>deux</b>").click()
    page.get_by_label("Name of the chat").fill("trois")
    page.keyboard.press("Escape")
    assert titles(page) == ["<b>deux</b>", "one"]
    page.get_by_role("button", name="Delete <b>deux</b>").click()
    page.get_by_text("Chat deleted.").wait_for()
    assert titles(page) == ["one"] and texts(page) == []
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector(".message")
    assert titles(page) == ["<b>deux</b>", "one"] and texts(page)[0] == "two"
    page.get_by_role("button", name="Delete <b>deux</b>").click()
    page.get_by_text("Chat deleted.").wait_for()
    page.wait_for_timeout(SAVED)
    page.reload()
    page.wait_for_selector("#chat-list a")
    assert titles(page) == ["one"]


def case_an_answer_goes_on_in_another_chat(world: World):
    page = chat_page(world)
    with written(world, page, text="word " * 120, limit=40) as writer:
        send(page, "long")
        grows(page)
        page.get_by_role("button", name="New chat").click()
        assert page.locator(".message").count() == 0 and page.locator("#send").is_visible()
        assert page.get_by_role("img", name="being answered").count() == 1
        writer.go_on()
        quiet(page)
    page.get_by_role("link", name="long").click()
    until(page, "() => document.querySelectorAll('.message').length === 2")
    assert texts(page)[-1].split() == ["word"] * 120


def case_tabs_share_chats(world: World):
    page = chat_page(world)
    other = world.tab(page.context)
    settings(page, max_tokens=4)
    ask(page, "seen in both")
    other.get_by_role("link", name="seen in both").click()
    other.wait_for_selector(".message")
    page.locator(".message.assistant").get_by_role("button", name="Edit").click()
    page.get_by_label("Text of the message").fill("changed")
    page.get_by_role("button", name="Save").click()
    other.locator(".message.assistant .body", has_text="changed").wait_for()
    page.get_by_role("button", name="Delete seen in both").click()
    other.locator("#chat-list a").wait_for(state="detached")
    # The list is drawn before the messages.
    until(other, "() => document.querySelectorAll('.message').length === 0")


def case_a_chat_that_is_deleted_while_it_is_answered_stays_deleted(world: World):
    page = chat_page(world)
    other = world.tab(page.context)
    for where in [page, other]:
        with written(world, page, text="word " * 4000, pace=0.01) as writer:
            send(page, "go on")
            grows(page)
            # The other tab deletes what is kept, and puts it back.
            until_kept(page, "(chat) => chat.messages.at(-1)?.content.includes('word word')")
            where.get_by_role("button", name="Delete go on").click()
            where.get_by_text("Chat deleted.").wait_for()
            hold_undo(where)
            assert writer.gone.wait(60), "the request still runs"
        for tab in [page, other]:
            tab.wait_for_selector("#chat-list a", state="detached")
        page.wait_for_timeout(SAVED)
        assert titles(page) == titles(other) == [] and page.locator("#send").is_visible()
    other.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="go on").click()
    page.wait_for_selector(".message.assistant")
    assert "word word" in texts(page)[-1]


def case_tabs_keep_what_each_of_them_changed(world: World):
    page = chat_page(world)
    other = world.tab(page.context)
    with written(world, page, text="word " * 120, pace=0.01, limit=60) as writer:
        send(page, "shared")
        other.get_by_role("link", name="shared").click()
        grows(other)
        assert other.get_by_role("img", name="being answered").count() == 1
        send(other, "refused")
        other.get_by_text("This chat is being answered in another tab.").wait_for()
        assert other.input_value("#message") == "refused"
        other.get_by_role("button", name="Rename shared").click()
        other.get_by_label("Name of the chat").fill("renamed")
        other.keyboard.press("Enter")
        settings(other, system="Be brief.")
        page.get_by_role("link", name="renamed").wait_for()
        writer.go_on()
        ended(page, 2)
    # The page has heard what the other tab kept, and that one what the page did.
    until(page, "() => document.querySelector('#system').value === 'Be brief.'")
    quiet(other)
    page.reload()
    page.wait_for_selector(".message")
    for tab in [page, other]:
        assert titles(tab) == ["renamed"] and tab.input_value("#system") == "Be brief."
        assert texts(tab)[0] == "shared" and texts(tab)[1].split() == ["word"] * 120
    with written(world, other, text="Yes."):
        assert ask(other, "and now") == "Yes."
    until(page, "() => document.querySelectorAll('.message').length === 4")


def case_an_answer_in_another_tab_disturbs_nothing(world: World):
    page = chat_page(world)
    with written(world, page, text="First."):
        ask(page, "one")
    other = world.tab(page.context)
    other.get_by_role("link", name="one").click()
    other.locator(".message.assistant").get_by_role("button", name="Edit").click()
    other.get_by_label("Text of the message").fill("mine")
    record_speech(other)
    blocks = [f"Block {number}." for number in range(80)]
    with written(world, page, text="\n\n".join(blocks), pace=0.01, limit=100) as writer:
        send(page, "two")
        # It speaks an answer that it has seen unfinished.
        other.locator(".message.assistant .body", has_text=blocks[3]).wait_for()
        writer.go_on()
        ended(page, 4)
    other.locator(".message.assistant .body", has_text=blocks[-1]).wait_for()
    ended(other, 4)
    quiet(other)
    spoken = recorded_speech(other)
    assert len(spoken) == len(set(spoken)) and spoken[-3:] == blocks[-3:], spoken
    assert other.get_by_label("Text of the message").input_value() == "mine"
    other.get_by_role("button", name="Save").click()
    page.locator(".message.assistant .body", has_text="mine").wait_for()


def case_rows_stay_while_two_chats_are_answered(world: World):
    page = chat_page(world)
    with written(world, page, text="word " * 400, pace=0.01, limit=200):
        send(page, "first")
        page.get_by_role("link", name="first").wait_for()
        page.get_by_role("button", name="New chat").click()
        send(page, "second")
        page.get_by_role("link", name="second").wait_for()
        page.evaluate("() => { window.rows = [...document.querySelectorAll('#chat-list li')] }")
        page.wait_for_timeout(SAVED)
        assert page.get_by_role("img", name="being answered").count() == 2
        assert page.evaluate("() => rows.length === 2 && rows.every((row) => row.isConnected)")
        assert titles(page) == ["second", "first"]


def case_back_leads_to_the_empty_chat(world: World):
    page = chat_page(world)
    settings(page, max_tokens=4)
    ask(page, "kept")
    page.get_by_role("button", name="New chat").click()
    page.get_by_role("link", name="kept").click()
    page.wait_for_selector(".message")
    page.go_back()
    page.wait_for_selector(".message", state="detached")
    assert "#" not in page.url and page.locator("#chat-title").inner_text() == "New chat"
    page.go_forward()
    page.wait_for_selector(".message")
    assert texts(page)[0] == "kept"


def case_a_reload_keeps_what_was_written(world: World):
    page = chat_page(world)
    with written(world, page, text="word " * 6000, pace=0.01):
        send(page, "long")
        grows(page, 100)
        until_kept(page, "(chat) => chat.messages.at(-1)?.content.includes('word word')")
        page.reload()
    page.wait_for_selector(".message.assistant")
    assert "word word" in texts(page)[-1] and page.locator(".message .notice", has_text="Stopped.").is_visible()
    ended(page, 2)


def case_chats_are_exported_and_imported(world: World):
    page = chat_page(world)
    settings(page, system="Be brief.", max_tokens=6)
    ask(page, "export me")
    before = texts(page)
    page.get_by_role("button", name="New chat").click()
    ask(page, "and me")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    file = Path(download.value.path())
    saved = json.loads(file.read_text())
    assert saved["format"] == "mlxcel-chats" and len(saved["chats"]) == 2
    with page.expect_download() as download:
        page.get_by_role("button", name="Export and me").click()
    assert download.value.suggested_filename == "and-me.json"

    other = chat_page(world)
    chosen = other.locator("#import-file")
    chosen.set_input_files({"name": "chats.json", "mimeType": "application/json", "buffer": file.read_bytes()})
    other.get_by_text("2 chats were imported.").wait_for()
    assert sorted(titles(other)) == ["and me", "export me"]
    other.get_by_role("link", name="export me").click()
    other.wait_for_selector(".message")
    assert texts(other) == before and other.input_value("#system") == "Be brief."
    for text, reason in [
        ("{", "the file is no JSON"),
        ("[]", "the file has no exported chats"),
        ('{"format": "mlxcel-chats", "version": 9, "chats": []}', "the file has version 9, expected 1"),
        ('{"format": "mlxcel-chats", "version": 1, "chats": [null]}', "chat 1 of the file is none"),
        (
            '{"format": "mlxcel-chats", "version": 1, "chats": [{"messages": [{"role": "root", "content": "a"}]}]}',
            "a message of chat 1 has no role or text",
        ),
    ]:
        chosen.set_input_files({"name": "chats.json", "mimeType": "application/json", "buffer": text.encode()})
        other.get_by_text(f"Nothing was imported: {reason}.").wait_for()
    assert len(titles(other)) == 2


def case_full_or_forbidden_storage_is_said(world: World):
    page = chat_page(world)
    settings(page, max_tokens=4)
    page.evaluate("() => { IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError') } }")
    ask(page, "too much")
    page.get_by_text("the browser's storage for this page is full").wait_for()
    assert page.locator(".message").count() == 2
    for script in [FORBIDDEN, UNREADABLE]:
        page = world.page(None)
        page.add_init_script(script)
        page.goto(world.url + "/")
        warning = page.get_by_text("chats are lost when the tab is closed")
        warning.wait_for()
        choose_model(page)
        settings(page, max_tokens=4)
        ask(page, "not kept")
        page.wait_for_timeout(SAVED)
        assert warning.is_visible() and titles(page) == ["not kept"]


def case_long_chats_work(world: World):
    """A thousand messages, each with lists, tables and code."""
    page = chat_page(world)
    text = "# Title\n\n- a\n- b\n\n|a|b|\n|-|-|\n|1|2|\n\n```js\nf();\n```\n\n" + "Words and **words**. " * 20
    messages = [{"role": ["user", "assistant"][index % 2], "content": text} for index in range(1000)]
    chats = [{"title": "huge", "messages": messages, "sampling": {"max_tokens": 4}}]
    file = json.dumps({"format": "mlxcel-chats", "version": 1, "chats": chats}).encode()
    page.locator("#import-file").set_input_files({"name": "c.json", "mimeType": "application/json", "buffer": file})
    page.get_by_text("One chat was imported.").wait_for()
    page.get_by_role("link", name="huge").click()
    until(page, "() => document.querySelectorAll('.message').length === 1000")
    at_end = "() => { const s = document.querySelector('#scroller'); return s.scrollHeight - s.scrollTop - s.clientHeight < 80 }"
    until(page, at_end)
    with written(world, page, text="The *last* word."):
        assert ask(page, "one more") == "The last word."


CASES_HERE = [
    case_chats_outlive_the_page,
    case_chats_are_renamed_and_deleted,
    case_an_answer_goes_on_in_another_chat,
    case_tabs_share_chats,
    case_a_chat_that_is_deleted_while_it_is_answered_stays_deleted,
    case_tabs_keep_what_each_of_them_changed,
    case_an_answer_in_another_tab_disturbs_nothing,
    case_rows_stay_while_two_chats_are_answered,
    case_back_leads_to_the_empty_chat,
    case_a_reload_keeps_what_was_written,
    case_chats_are_exported_and_imported,
    case_full_or_forbidden_storage_is_said,
    case_long_chats_work,
]
