"""A browser whose every complaint fails the test: console errors, violations of the policy, dialogs, other origins."""

import contextlib
import re

from playwright.sync_api import Browser, Page, Playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Runs before the page's own scripts.
WATCH = """
addEventListener("securitypolicyviolation", (event) => {
  complain(`the policy forbids ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""

# What innerText returns depends on what was drawn already.
TEXTS = """
() => [...document.querySelectorAll(".message .body")].map((body) => {
  const copy = body.cloneNode(true);
  for (const line of copy.querySelectorAll("br")) line.replaceWith("\\n");
  return copy.textContent.trim();
})
"""

# The element itself has the last lines only.
RECORD = """
() => {
  window.spoken = [];
  const note = (changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach((node) => spoken.push(node.textContent)));
  new MutationObserver(note).observe(document.querySelector("#announcer"), { childList: true });
}
"""

# CHECK is a function of a chat.
KEPT = """
async (given) => {
  const done = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const database = await done(indexedDB.open("mlxcel-chats"));
  const chats = await done(database.transaction("chats").objectStore("chats").getAll());
  database.close();
  return chats.some((chat) => (CHECK)(chat, given));
}
"""

POLL = 50  # milliseconds

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}


def launch(playwright: Playwright, executable: str) -> Browser:
    return playwright.chromium.launch(executable_path=executable, args=FLAGS, timeout=120_000)


class World:
    """A server and a browser, for one test."""

    def __init__(self, browser: Browser, url: str, writer, keyed: tuple[str, str] | None = None):
        self.browser = browser
        self.url = url.rstrip("/")
        self.writer = writer
        self.keyed = keyed
        self.complaints: list[str] = []
        self.allowed: list[str] = []
        self.contexts = []

    def allow(self, pattern: str):
        """Lets the console say something that the test brings about."""
        self.allowed.append(pattern)

    def complain(self, text: str):
        if not any(re.search(pattern, text) for pattern in self.allowed):
            self.complaints.append(text)

    def page(self, path: str | None = "/", url: str | None = None, **options) -> Page:
        """Opens a page in a browser that has kept nothing."""
        context = self.browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
        context.set_default_timeout(60_000)
        context.expose_function("complain", self.complain)
        context.add_init_script(WATCH)
        self.contexts.append(context)
        return self.tab(context, path, url)

    def tab(self, context, path: str | None = "/", url: str | None = None) -> Page:
        base = (url or self.url).rstrip("/")
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and self.complain(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.complain(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.complain(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: self.complain(f"popup: {popup.url}"))
        page.on("request", lambda request: self.check_origin(base, request.url))
        if path is not None:
            page.goto(base + path)
        return page

    def check_origin(self, base: str, url: str):
        if not url.startswith((base + "/", "blob:" + base + "/")):
            self.complain(f"a request to another origin: {url}")

    def close(self):
        for context in self.contexts:
            context.close()

    def verdict(self):
        assert not self.complaints, "\n".join(self.complaints)


def chat_page(world: World, model: str | None = None, **options) -> Page:
    """Opens the chat page with a model that can chat, or with the one that is named."""
    page = world.page("/", **options)
    choose_model(page, model)
    return page


def choose_model(page: Page, model: str | None = None):
    """Chooses the model that is named, or one that can chat."""
    page.wait_for_selector("#model option", state="attached")
    names = page.locator("#model option").all_text_contents()
    named = model or next((name for name in names if not name.endswith(")")), None)
    assert named, f"found no model with a chat template among {names}"
    page.select_option("#model", label=named)


def settings(page: Page, system: str | None = None, **sampling):
    """Sets the controls of the chat that is shown."""
    if page.locator("#settings").is_hidden():
        page.click(".top [data-open=settings]")
    if system is not None:
        page.fill("#system", system)
    for name, value in sampling.items():
        page.fill(f"#sampling-{name}", "" if value is None else str(value))
    page.click("[data-close=settings]")


def send(page: Page, text: str):
    page.fill("#message", text)
    page.press("#message", "Enter")


def ended(page: Page, count: int | None = None):
    """Waits until nothing is written, and checks the number of messages."""
    page.wait_for_selector("#send", state="visible")
    # What came last is drawn, and spoken, with the next frame.
    until(page, "() => !document.querySelector('.message[aria-busy=true]')")
    if count is not None:
        assert page.locator(".message").count() == count, texts(page)


def ask(page: Page, text: str) -> str:
    """Sends a message, and returns the answer's text."""
    before = page.locator(".message").count()
    send(page, text)
    until(page, "count => document.querySelectorAll('.message').length === count", before + 2)
    ended(page)
    return texts(page)[-1]


def texts(page: Page) -> list[str]:
    """Returns the texts of the messages that are shown."""
    return page.evaluate(TEXTS)


def announced(page: Page) -> list[str]:
    """Returns what was said to screen readers."""
    return page.locator("#announcer p").all_text_contents()


def record_speech(page: Page):
    """Begins to record what is said to screen readers."""
    page.evaluate(RECORD)


def recorded_speech(page: Page) -> list[str]:
    """Returns what was said since the recording began."""
    return page.evaluate("spoken")


def grows(page: Page, length: int = 20):
    """Waits until so much of the last answer is there."""
    script = "length => [...document.querySelectorAll('.message.assistant .body')].at(-1)?.innerText.length > length"
    until(page, script, length)


def until(page: Page, script: str, given=None):
    """Waits until `script` returns something true. By default it would be asked with every frame, each drawn for that alone."""
    page.wait_for_function(script, arg=given, polling=POLL)


def until_promised(page: Page, script: str, given=None):
    """Waits until the promise that `script` returns is one of true. `wait_for_function` takes every promise for true."""
    for _ in range(1200):
        if page.evaluate(script, given):
            return
        page.wait_for_timeout(POLL)
    raise AssertionError(f"found nothing true within a minute of {script}")


def until_kept(page: Page, check: str, given=None):
    """Waits until the browser's database has a chat of which `check`, a function of it and of `given`, is true."""
    until_promised(page, KEPT.replace("CHECK", check), given)


def hold_undo(page: Page):
    """Keeps the note that offers to undo something, which otherwise goes after some seconds."""
    page.get_by_role("button", name="Undo").hover()


def received(page: Page, writer):
    """Waits until the writer has a request, which a page that stops before has not sent."""
    for _ in range(3000):
        if writer.bodies:
            return
        page.wait_for_timeout(20)
    raise AssertionError("found no request, expected one")


@contextlib.contextmanager
def written(world: World, page: Page, **script):
    """Has the writer answer in place of the model."""
    world.writer.script(**script)
    pattern = re.compile(r"/v1/(chat/)?completions$")
    page.route(pattern, lambda route: route.continue_(url=world.writer.url))
    try:
        yield world.writer
    finally:
        world.writer.go_on()
        page.unroute(pattern)
