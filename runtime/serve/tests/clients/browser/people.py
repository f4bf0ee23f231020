"""Who uses the pages: by keyboard, on a phone, with a screen reader, in the dark."""

from axe_playwright_python.sync_playwright import Axe

from .driver import PHONE, World, ask, chat_page, ended, settings, texts, written

RICH = """# A heading

Some *text* with `code`, a [link](https://example.org) and a list:

1. one
   - [x] nested

> A quote.

```rust
fn a_rather_long_name_of_a_function(with: Several, arguments: That, need: A, line: Wider, than: APhone) {}
```

| column | another column | a third column | a fourth column | a fifth column |
|---|--:|:-:|---|---|
| averyveryveryverylongwordwithoutspaces | 2 | 3 | 4 | 5 |

averyveryveryveryveryveryveryveryveryveryveryveryveryverylongwordwithoutspaces
"""

WIDTH = "() => [document.documentElement.scrollWidth, document.querySelector('#scroller')?.scrollWidth ?? 0]"


def check_access(page, what: str):
    results = Axe().run(page)
    found = [
        f"{violation['id']}: {violation['help']}: {[node['html'][:200] for node in violation['nodes']][:3]}"
        for violation in results.response["violations"]
    ]
    assert not found, f"{what}\n" + "\n".join(found)


def check_width(page, what: str):
    width, inner = page.evaluate(WIDTH)
    assert width <= PHONE["width"] and inner <= PHONE["width"], f"{what}: {width} and {inner} pixels"


def focused(page) -> str:
    """Returns the name of what has the focus."""
    script = "() => { const e = document.activeElement; return e.getAttribute('aria-label') ?? e.labels?.[0]?.innerText ?? e.innerText }"
    return page.evaluate(script).strip()


def tab_to(page, name: str, key: str = "Tab"):
    for _ in range(60):
        page.keyboard.press(key)
        if focused(page) == name:
            return
    raise AssertionError(f"{key} does not reach {name}")


def case_everything_works_by_keyboard(world: World):
    page = chat_page(world)
    settings(page, max_tokens=6)
    tab_to(page, "Skip to the message box", "Shift+Tab")
    page.keyboard.press("Enter")
    assert focused(page) == "Message"
    page.keyboard.type("first line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    ended(page, 2)
    assert texts(page)[0] == "first line\nsecond line" and focused(page) == "Message"
    tab_to(page, "Regenerate", "Shift+Tab")
    page.keyboard.press("Enter")
    ended(page, 2)
    page.focus("#message")
    tab_to(page, "Edit and send again", "Shift+Tab")
    page.keyboard.press("Enter")
    assert focused(page) == "Text of the message"
    page.keyboard.press("Escape")
    assert focused(page) == "Edit and send again" and page.locator(".message").count() == 2
    page.focus("#message")
    tab_to(page, "Settings and bundle", "Shift+Tab")
    page.keyboard.press("Enter")
    assert focused(page) == "Close the settings"
    page.keyboard.press("Enter")
    assert page.locator("#settings").is_hidden() and focused(page) == "Settings and bundle"
    tab_to(page, "Delete first line", "Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Chat deleted.").wait_for()
    assert page.locator("#chat-list a").count() == 0 and focused(page) == "New chat"
    tab_to(page, "Undo")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message")


def case_enter_of_an_input_method_sends_nothing(world: World):
    page = chat_page(world)
    page.fill("#message", "かな")
    # As Safari sends it, after the end of the composition.
    key = {"key": "Enter", "keyCode": 229, "bubbles": True, "cancelable": True}
    page.locator("#message").dispatch_event("keydown", key)
    assert page.input_value("#message") == "かな" and page.locator(".message").count() == 0


def case_chat_is_accessible(world: World):
    for scheme in ["light", "dark"]:
        page = chat_page(world, color_scheme=scheme)
        check_access(page, f"an empty chat, {scheme}")
        with written(world, page, text=RICH, reasoning="Let me think.", finish="length"):
            ask(page, "Say something rich.")
        page.locator("details.reasoning summary").click()
        settings(page, temperature=0.5)
        page.click("#summary")
        page.fill("#sampling-top_p", "3")
        check_access(page, f"a chat, {scheme}")
        page.locator(".message.user").get_by_role("button", name="Edit and send again").click()
        page.locator("#key").click()
        check_access(page, f"a dialog, {scheme}")
        page.keyboard.press("Escape")
        plain = [name for name in page.locator("#model option").all_text_contents() if name.endswith("(text)")]
        page.select_option("#model", label=plain[0])
        check_access(page, f"a text, {scheme}")


def case_landmarks_have_names(world: World):
    page = chat_page(world)
    for role, name in [
        ("complementary", "Chats"),
        ("navigation", "Your chats"),
        ("banner", None),
        ("main", None),
        ("form", "Your message"),
        ("textbox", "Message"),
        ("combobox", "Model"),
        ("button", "Send"),
        ("list", "Messages"),
        ("group", "Theme"),
    ]:
        assert page.get_by_role(role, name=name, exact=True).count() == 1, (role, name)
    assert page.locator("h1").count() == 1


def case_a_phone_has_room(world: World):
    page = chat_page(world, viewport=PHONE, has_touch=True, is_mobile=True)
    check_width(page, "an empty chat")
    with written(world, page, text=RICH, reasoning="think " * 40):
        ask(page, "averyveryveryveryveryveryveryveryveryveryveryverylongwordwithoutspaces " * 2)
    check_width(page, "a chat")
    page.locator("details.reasoning summary").tap()
    check_width(page, "reasoning")
    opener = page.get_by_role("button", name="Chats", exact=True)
    assert page.locator("#sidebar").is_hidden()
    opener.tap()
    assert page.locator("#sidebar").is_visible() and opener.get_attribute("aria-expanded") == "true"
    assert page.locator(".column").get_attribute("inert") is not None
    check_width(page, "the list of chats")
    page.keyboard.press("Escape")
    assert page.locator("#sidebar").is_hidden() and focused(page) == "Chats"
    page.get_by_role("button", name="Settings and bundle").tap()
    check_width(page, "settings")
    page.locator("#backdrop").dispatch_event("click")
    assert page.locator("#settings").is_hidden() and page.locator(".column").get_attribute("inert") is None
    page.goto(world.url + "/status")
    page.wait_for_selector(".model")
    check_width(page, "status")


def case_a_theme_is_kept(world: World):
    page = chat_page(world, color_scheme="light")
    color = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(color)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(color)
    assert light != dark
    page.locator("label", has_text="Light").click()
    assert page.evaluate(color) == light
    page.goto(world.url + "/status")
    assert page.evaluate(color) == light
    assert page.get_by_role("radio", name="Light").is_checked()
    page.locator("label", has_text="Auto").click()
    assert page.evaluate(color) == dark


def case_motion_is_reduced(world: World):
    moving = "() => document.getAnimations().filter((animation) => animation.effect.getTiming().iterations === Infinity).length"
    for preference, expected in [("reduce", 0), ("no-preference", 3)]:
        page = chat_page(world, reduced_motion=preference)
        # Nothing answers.
        page.route("**/v1/chat/completions", lambda route: None)
        page.fill("#message", "wait")
        page.keyboard.press("Enter")
        page.wait_for_selector(".thinking")
        assert page.evaluate(moving) == expected
        page.keyboard.press("Escape")


CASES_HERE = [
    case_everything_works_by_keyboard,
    case_enter_of_an_input_method_sends_nothing,
    case_chat_is_accessible,
    case_landmarks_have_names,
    case_a_phone_has_room,
    case_a_theme_is_kept,
    case_motion_is_reduced,
]
