"""Pictures of the pages for the crate's README."""

import json
import threading
import urllib.request
from pathlib import Path

from .driver import PHONE, World, ask, chat_page, settings, written

QUESTION = "Why does a server keep keys and values in pages?"

ANSWER = """A **page table** maps what a sequence sees as one run of positions to pages anywhere in memory. \
Three things follow:

1. Memory is reserved in small pieces, so nothing is kept for the *longest possible* answer.
2. Sequences that begin alike **share** their first pages.
3. A page that nobody uses any more goes back to the pool at once.

### Looking up a position

```rust
fn locate(table: &[u32], position: usize) -> (u32, usize) {
    (table[position / 64], position % 64)
}
```

| scheme | wasted at most | shares prefixes |
|:--|--:|:-:|
| one buffer for each sequence | a whole context | no |
| pages of 64 positions | 63 positions | yes |
"""

MORE = "And what does a smaller page cost?"

SECOND = """Tables grow, and reads get shorter. A page of `64` positions is one block of the attention kernel, \
so that nothing is read twice."""

WIDE = {"width": 1200, "height": 820}
CLIENTS = 24
SECONDS = 75


def complete(url: str, model: str, number: int):
    body = {"model": model, "prompt": f"{number} And the LORD spake unto Moses, saying, " * (1 + number % 9), "max_tokens": 200}
    body["ignore_eos"] = True
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        response.read()


class Load:
    """Clients that ask all the time, in waves."""

    def __init__(self, url: str, model: str):
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(url, model, number)) for number in range(CLIENTS)]

    def run(self, url: str, model: str, number: int):
        while not self.over.is_set():
            complete(url, model, number)
            self.over.wait(number % 5 * 0.7)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def converse(world: World, page):
    """Has the writer answer twice, at a pace that models have."""
    with written(world, page, text=ANSWER, reasoning="The question is about memory, so I compare two schemes.", pace=0.008):
        ask(page, QUESTION)
    with written(world, page, text=SECOND, pace=0.008):
        ask(page, MORE)


def others(page):
    """Begins other chats, so that the list has some."""
    for title in ["Translate a psalm", "Sort a list in place", "Names for a boat"]:
        settings(page, max_tokens=8)
        ask(page, title)
        page.get_by_role("button", name="New chat").click()
    settings(page, max_tokens=None)


def take(page, folder: Path, name: str):
    page.wait_for_timeout(400)
    page.screenshot(path=folder / f"{name}.png")


def only(route, model: str):
    """Shows the model that has the load, and leaves out the others."""
    response = route.fetch()
    status = response.json()
    status["models"] = [one for one in status["models"] if one["name"] == model]
    route.fulfill(response=response, json=status)


def taking(target: str):
    folder = Path(target)

    def case_pictures_are_taken(world: World):
        folder.mkdir(parents=True, exist_ok=True)
        for name, scheme in [("chat-light", "light"), ("chat-dark", "dark")]:
            page = chat_page(world, viewport=WIDE, color_scheme=scheme)
            others(page)
            converse(world, page)
            if scheme == "dark":
                page.click(".top [data-open=settings]")
                page.fill("#system", "You explain in short sentences.")
                page.fill("#sampling-temperature", "0.7")
                page.fill("#sampling-seed", "11")
                page.evaluate("() => document.activeElement.blur()")
                page.evaluate("() => document.querySelector('#scroller').scrollTo(0, 0)")
            page.mouse.move(0, 0)
            take(page, folder, name)
        page = chat_page(world, viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
        with written(world, page, text=ANSWER, pace=0.008):
            ask(page, QUESTION)
        page.evaluate("() => { document.activeElement.blur(); document.querySelector('#scroller').scrollTo(0, 0) }")
        take(page, folder, "chat-phone")
        model = page.locator("#model option").first.get_attribute("value")
        with Load(world.url, model):
            page = world.page(None, viewport={"width": 1200, "height": 1000})
            page.route("**/status.json", lambda route: only(route, model))
            page.goto(world.url + "/status")
            page.wait_for_timeout(SECONDS * 1000)
            take(page, folder, "status-under-load")

    return case_pictures_are_taken
