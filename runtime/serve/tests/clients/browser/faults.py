"""What goes wrong: refusals, a busy server, broken streams, keys, and hostile texts."""

import json

from .driver import World, ask, chat_page, ended, send, settings, texts, until, until_kept, written

# Each notice is shown for a second.
NOTE_NOTICES = """
() => {
  window.noticed = new Set();
  const note = () => document.querySelectorAll(".message .notice").forEach((notice) => noticed.add(notice.textContent));
  new MutationObserver(note).observe(document.querySelector("#transcript"), { childList: true, subtree: true });
}
"""


def refusal(status: int, message: str, code: str | None = None, headers: dict | None = None) -> dict:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return {"status": status, "headers": headers or {}, "content_type": "application/json", "body": json.dumps({"error": error})}


def case_a_refusal_is_shown_in_its_place(world: World):
    world.allow("status of 400")
    page = chat_page(world)
    settings(page, max_tokens=100_000)
    send(page, "too long")
    alert = page.locator(".message.assistant [role=alert]")
    alert.wait_for()
    assert "expected at most" in alert.inner_text(), alert.inner_text()
    settings(page, max_tokens=4)
    alert.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".message.assistant .stats")
    ended(page, 2)
    assert page.locator("[role=alert]").count() == 0 and texts(page)[0] == "too long"


def case_a_busy_server_is_asked_again_later(world: World):
    world.allow("status of 429")
    page = chat_page(world)
    settings(page, max_tokens=4)
    # The last one ends when the test stops it.
    tries, pauses = [], ["2", "2", None, "600"]

    def answer(route):
        tries.append(route.request.post_data_json["messages"][-1]["content"])
        if pause := pauses.pop(0):
            route.fulfill(**refusal(429, "the queue is full", "queue_full", {"Retry-After": pause}))
        else:
            route.continue_()

    page.route("**/v1/chat/completions", answer)
    page.evaluate(NOTE_NOTICES)
    send(page, "busy")
    page.wait_for_selector(".message.assistant .stats")
    noticed = page.evaluate("[...noticed]")
    assert {f"The server is busy. Next try in {seconds} s." for seconds in (1, 2)} <= set(noticed), noticed
    assert tries == ["busy"] * 3
    tries.clear()
    send(page, "busy again")
    page.get_by_text("The server is busy.").wait_for()
    page.keyboard.press("Escape")
    ended(page, 4)
    assert page.locator(".message .notice", has_text="Stopped.").is_visible() and tries == ["busy again"]


def case_a_stream_that_breaks_off_is_no_answer(world: World):
    world.allow("net::ERR_")
    page = chat_page(world)
    with written(world, page, text="half an", is_whole=False):
        send(page, "break")
        page.locator("[role=alert]", has_text="The answer broke off.").wait_for()
    assert texts(page)[-1] == "half an"
    page.route("**/v1/chat/completions", lambda route: route.abort())
    page.get_by_role("button", name="Try again").click()
    page.locator("[role=alert]", has_text="The server cannot be reached.").wait_for()
    page.unroute("**/v1/chat/completions")
    failed = 'data: {"error": {"message": "the engine has ended", "code": null}}\n\n'
    page.route("**/v1/chat/completions", lambda route: route.fulfill(content_type="text/event-stream", body=failed))
    page.get_by_role("button", name="Try again").click()
    page.locator("[role=alert]", has_text="The engine has ended.").wait_for()
    ended(page, 2)


def case_models_that_cannot_be_listed(world: World):
    world.allow("status of 502")
    page = world.page(None)
    page.route("**/v1/models", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    page.goto(world.url + "/")
    page.get_by_text("The models cannot be listed: the server answered 502").wait_for()
    send(page, "nobody hears it")
    assert page.locator(".message").count() == 0 and page.input_value("#message") == "nobody hears it"
    page.unroute("**/v1/models")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("#model option", state="attached")
    assert page.get_by_text("The models cannot be listed").count() == 0


def case_embedding_models_cannot_chat(world: World):
    page = world.page(None)
    model = {"id": "vectors", "object": "model", "task": "embedding", "chat_template": False, "context": 512}
    page.route("**/v1/models", lambda route: route.fulfill(json={"object": "list", "data": [model]}))
    page.goto(world.url + "/")
    page.get_by_text("It cannot chat").wait_for()
    assert page.locator("#composer").is_hidden() and page.locator("#text-mode").is_hidden()
    assert page.locator("#model option").all_text_contents() == ["vectors (embeddings)"]


def case_key_is_asked_for(world: World):
    world.allow("status of 401")
    url, key = world.keyed
    page = world.page("/", url=url)
    dialog = page.get_by_role("dialog", name="API key")
    dialog.wait_for()
    assert page.evaluate("document.activeElement.id") == "key-input"
    page.fill("#key-input", "wrong")
    page.keyboard.press("Enter")
    until(page, "() => document.querySelector('#key-input')?.value === 'wrong'")
    dialog.wait_for()
    page.fill("#key-input", "not a key")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").filter(has_text="no spaces").is_visible()
    page.keyboard.press("Escape")
    page.get_by_text("The models cannot be listed").wait_for()
    page.get_by_role("button", name="Try again").click()
    page.fill("#key-input", key)
    page.get_by_role("button", name="Use this key").click()
    page.wait_for_selector("#model option", state="attached")
    kept = "[sessionStorage, localStorage].map((storage) => storage.getItem('mlxcel-api-key'))"
    assert page.evaluate(kept) == [key, None]
    page.reload()
    page.wait_for_selector("#model option", state="attached")
    # Another tab has to ask, unless the key is remembered.
    other = world.tab(page.context, "/status", url)
    other.get_by_role("dialog", name="API key").wait_for()
    other.fill("#key-input", key)
    other.check("#key-remember")
    other.keyboard.press("Enter")
    other.wait_for_selector(".model")
    assert other.evaluate(kept) == [key, key]
    third = world.tab(page.context, "/", url)
    third.wait_for_selector("#model option", state="attached")
    assert third.get_by_role("dialog").count() == 0


def case_key_is_asked_for_within_a_chat(world: World):
    world.allow("status of 401")
    page = chat_page(world)
    settings(page, max_tokens=4)
    page.route("**/v1/chat/completions", lambda route: route.fulfill(**refusal(401, "no valid key", "invalid_api_key")))
    send(page, "locked")
    page.get_by_role("dialog", name="API key").wait_for()
    page.unroute("**/v1/chat/completions")
    page.fill("#key-input", "a-key")
    with page.expect_request("**/v1/chat/completions") as asked:
        page.keyboard.press("Enter")
    assert asked.value.headers["authorization"] == "Bearer a-key"
    page.wait_for_selector(".message.assistant .stats")
    ended(page, 2)


SCRIPT = "window.pwned = 1"

# Each runs something in a page that trusts it.
HOSTILE = [
    f"<script>{SCRIPT}</script>",
    f"<img src=x onerror='{SCRIPT}'>",
    f"<svg onload='{SCRIPT}'><animate onbegin='{SCRIPT}' attributeName=x dur=1s>",
    f"<iframe srcdoc=\"<script>parent.{SCRIPT}</script>\"></iframe>",
    "<style>@import 'https://evil.example/x.css';</style><link rel=stylesheet href='https://evil.example/y.css'>",
    f"[click](javascript:{SCRIPT})",
    f"[click](JaVaScRiPt:{SCRIPT}) [tab](java\tscript:{SCRIPT}) [nul](\x01javascript:{SCRIPT})",
    "[data](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [vb](vbscript:msgbox) [file](file:///etc/passwd)",
    f"[entity](&#106;avascript:{SCRIPT}) <javascript:{SCRIPT}> [blob](blob:https://evil.example/a)",
    "![beacon](https://evil.example/beacon.png) ![data](data:image/svg+xml,<svg/onload=alert(1)>)",
    f"```html\n<script>{SCRIPT}</script>\n```",
    f"```\"><img src=x onerror={SCRIPT}>\ncode\n```",
    f"| <img src=x onerror={SCRIPT}> | b |\n|-|-|\n| <b onclick={SCRIPT}>x</b> | `<i>` |",
    f"[x](https://a.example/\" onmouseover=\"{SCRIPT}) [t](https://a.example 'x\" onclick=\"{SCRIPT}')",
    f"<a href=\"javascript:{SCRIPT}\">a</a> <form action=https://evil.example><input name=q autofocus onfocus={SCRIPT}></form>",
    f"<math><mtext></mtext><mglyph><style><img src=x onerror={SCRIPT}></style></mglyph></math>",
    "<base href=https://evil.example/><meta http-equiv=refresh content=0;url=https://evil.example/>",
    f"<details open ontoggle={SCRIPT}><summary>x</summary></details> <video><source onerror={SCRIPT}></video>",
    "__proto__ constructor ${7*7} {{7*7}} <%= 7*7 %>",
]

FOREIGN = """
() => {
  const allowed = new Set(["P", "BR", "STRONG", "EM", "DEL", "CODE", "A", "UL", "OL", "LI", "INPUT", "BLOCKQUOTE", "HR",
    "DIV", "SPAN", "PRE", "BUTTON", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "H3", "H4", "H5", "H6"]);
  const found = [];
  for (const element of document.querySelectorAll(".message .body *:not(svg, path)")) {
    if (!allowed.has(element.tagName)) found.push(element.tagName);
    for (const { name } of element.attributes) if (name.startsWith("on") || name === "style") found.push(name);
    if (element.tagName === "A" && !/^(https?|mailto):/.test(element.href)) found.push(element.href);
  }
  return [found, window.pwned ?? null];
}
"""


def case_hostile_texts_are_text(world: World):
    page = chat_page(world)
    for text in HOSTILE:
        with written(world, page, text=text, reasoning=text, size=7):
            ask(page, text)
        assert page.evaluate(FOREIGN) == [[], None], text
        shown = page.locator(".message.user .body").last
        assert shown.evaluate("body => body.textContent") == text
        for link in page.locator(".message.assistant .body").last.locator("a").all():
            link.hover()
            assert link.get_attribute("rel") == "noopener noreferrer"
    assert page.evaluate(FOREIGN) == [[], None]
    # Titles, names in the list, and what is read back from the database.
    whole = "(chat, count) => chat.messages.length === count && !chat.messages.at(-1).isOpen"
    until_kept(page, whole, 2 * len(HOSTILE))
    page.get_by_role("button", name="New chat").click()
    page.reload()
    page.locator("#chat-list a").first.click()
    until(page, "count => document.querySelectorAll('.message').length === count", 2 * len(HOSTILE))
    assert page.evaluate(FOREIGN) == [[], None]
    assert page.locator("#chat-title").inner_text().startswith("<script>")
    assert page.locator("#chat-list script, #chat-title *").count() == 0


CASES_HERE = [
    case_a_refusal_is_shown_in_its_place,
    case_a_busy_server_is_asked_again_later,
    case_a_stream_that_breaks_off_is_no_answer,
    case_models_that_cannot_be_listed,
    case_embedding_models_cannot_chat,
    case_key_is_asked_for,
    case_key_is_asked_for_within_a_chat,
    case_hostile_texts_are_text,
]
