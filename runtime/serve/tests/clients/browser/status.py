"""The status page."""

import json
import urllib.request

from .driver import World, until
from .people import check_access


def generate(world: World, model: str) -> dict:
    """Has the server do something, and returns its usage."""
    body = {"model": model, "prompt": "In the beginning", "max_tokens": 32}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(world.url + "/v1/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["usage"]


def numbers(world: World) -> dict:
    with urllib.request.urlopen(world.url + "/status.json", timeout=60) as response:
        return json.load(response)


def generators(world: World) -> list[str]:
    """Returns the names of the models that generate; others embed."""
    with urllib.request.urlopen(world.url + "/v1/models", timeout=60) as response:
        return [model["id"] for model in json.load(response)["data"] if model["task"] == "generation"]


def case_status_shows_the_numbers(world: World):
    names = [model["name"] for model in numbers(world)["models"]]
    for name in generators(world):
        generate(world, name)
    page = world.page("/status")
    page.wait_for_selector(".model")
    assert page.locator(".model h2").all_text_contents() == names
    status = numbers(world)
    assert f"version {status['version']}" in page.locator("#facts").inner_text()
    for model in status["models"]:
        section = page.get_by_role("region", name=model["name"], exact=True)
        text = section.inner_text()
        assert f"{model['totals']['requests']:,}" in text and f"{model['totals']['generated_tokens']:,}" in text
        assert model["digest"][:20] in text and f"of {model['queue']['limit']:,}" in text
        pools = section.locator(".pool svg").all()
        assert len(pools) == len(model["cache"])
        for pool, cache in zip(pools, model["cache"], strict=True):
            assert f"{cache['pages']:,} pages" in pool.get_attribute("aria-label")
    rows = page.locator("#slowest-table tbody tr")
    assert rows.count() == len(status["slowest"])
    assert status["slowest"][0]["id"] in rows.first.inner_text()


def case_status_is_refreshed(world: World):
    page = world.page("/status")
    page.wait_for_selector(".model")
    name = page.locator(".model h2").first.inner_text()
    before = numbers(world)["models"][0]["totals"]["requests"]
    generate(world, name)
    after = f"{before + 1:,}"
    page.locator(".model").first.locator(".facts dd", has_text=after).first.wait_for()


def example(**changes) -> dict:
    """Makes numbers of a busy server."""
    points = [
        {
            "at": 1_800_000_000 + 5 * index,
            "prompt_tokens_per_second": 100.0 * (index % 7),
            "generated_tokens_per_second": 10.0 * index,
            "waiting": index % 3,
            "running": 4,
            "rows_per_step": None,
            "cache_in_use": 0.5,
        }
        for index in range(40)
    ]
    totals = {name: 1000 for name in ["requests", "prompt_tokens", "cached_tokens", "generated_tokens", "steps", "rows"]}
    pool = {"window": None, "pages": 100, "free": 50, "cached": 20, "in_use": 30, "page_bytes": 65536}
    model = {
        "name": "<b>example</b>",
        "digest": "blake3:" + "0" * 64,
        "target": "cpu",
        "device": "local-task",
        "context": 512,
        "queue": {"waiting": 256, "limit": 256},
        "running": 16,
        "rows_per_step": None,
        "cache": [pool, {**pool, "window": 128, "pages": 0, "free": 0, "cached": 0, "in_use": 0}],
        "totals": totals,
        "history": {"interval_seconds": 5, "points": points},
    }
    return {"version": "1", "uptime_seconds": 90061, "draining": False, "models": [model], "slowest": [], **changes}


def case_status_plots_can_be_read(world: World):
    for scheme in ["light", "dark"]:
        page = world.page(None, color_scheme=scheme)
        page.route("**/status.json", lambda route: route.fulfill(json=example()))
        page.goto(world.url + "/status")
        page.wait_for_selector(".model")
        assert page.locator(".model h2").inner_text() == "<b>example</b>"
        assert "up for 1 d 1 h" in page.locator("#facts").inner_text()
        assert "No request has ended yet." in page.locator("#slowest").inner_text()
        assert "256 of 256" in page.locator(".tile.alarm").inner_text()
        plot = page.get_by_role("slider", name="Generated, tokens/s")
        assert plot.get_attribute("aria-valuetext").endswith("generated 390 tokens/s")
        assert "400" in plot.locator(".axis").all_text_contents()
        plot.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        assert plot.get_attribute("aria-valuetext").endswith("generated 380 tokens/s")
        assert page.locator(".tip:visible").inner_text().split()[-2:] == ["380", "tokens/s"]
        page.keyboard.press("Home")
        assert plot.get_attribute("aria-valuenow") == "0"
        page.get_by_role("slider", name="Requests, requests").hover()
        assert "running" in page.locator(".tip:visible").last.inner_text()
        page.locator("figure", has_text="Prompts").get_by_text("As a table").click()
        rows = page.get_by_role("region", name="Prompts, tokens/s").locator("tbody tr")
        # The table is drawn when it is opened, a moment after the click.
        rows.nth(39).wait_for()
        cells = [row.split()[-1] for row in rows.all_inner_texts()]
        assert cells[:3] == ["400", "300", "200"] and len(cells) == 40, cells
        check_access(page, f"status, {scheme}")


def case_status_tells_ends_and_the_fullest_pool(world: World):
    ended = {"id": "cmpl-1", "model": "example", "endpoint": "/v1/completions", "at": 1_800_000_000, "seconds": 90}
    status = example(slowest=[ended])
    pool, window = status["models"][0]["cache"]
    status["models"][0]["cache"] = [pool, {**window, "pages": 10, "free": 1, "in_use": 9}]
    page = world.page(None)
    page.route("**/status.json", lambda route: route.fulfill(json=status))
    page.goto(world.url + "/status")
    page.wait_for_selector(".model")
    time = page.evaluate("new Date(1_800_000_090_000).toLocaleTimeString('en-GB')")
    assert page.locator("#slowest-table tbody td").first.inner_text() == time
    assert page.locator(".tile", has_text="Cache in use").locator("dd").inner_text() == "90 %"


# Notes when the page asks.
CLICK_TWICE = """
(button) => {
  window.asked = [];
  const { fetch } = window;
  window.fetch = (...given) => {
    asked.push(performance.now());
    return fetch(...given);
  };
  button.click();
  button.click();
}
"""


def case_status_is_asked_for_by_one_loop(world: World):
    world.allow("status of 401")
    page = world.page(None)
    page.route("**/status.json", lambda route: route.fulfill(status=401, json={"error": {"message": "no valid key"}}))
    page.goto(world.url + "/status")
    page.get_by_role("dialog", name="API key").wait_for()
    page.keyboard.press("Escape")
    button = page.get_by_role("button", name="Enter a key")
    button.wait_for()
    page.unroute("**/status.json")
    page.route("**/status.json", lambda route: route.fulfill(json=example()))
    button.evaluate(CLICK_TWICE)
    page.wait_for_selector(".model")
    # One loop asks at once and after three seconds.
    until(page, "() => asked.length > 1")
    first, second, *_ = page.evaluate("asked")
    assert second - first > 2900, (first, second)


def case_status_says_what_is_wrong(world: World):
    world.allow("status of 500")
    world.allow("net::ERR_")
    page = world.page(None)
    page.route("**/status.json", lambda route: route.fulfill(json=example(draining=True)))
    page.goto(world.url + "/status")
    page.get_by_text("The server is draining").wait_for()
    # Routes replace those before: without one, the server itself would be asked in between.
    page.route("**/status.json", lambda route: route.abort())
    page.get_by_text("The numbers are not up to date: the server cannot be reached.").wait_for()
    assert page.locator(".model").count() == 1
    page.route("**/status.json", lambda route: route.fulfill(status=500, body="oh"))
    page.get_by_text("the server answered 500").wait_for()
    page.unroute("**/status.json")
    page.get_by_text("The numbers are not up to date").wait_for(state="detached")
    page.get_by_text("example", exact=False).first.wait_for(state="detached")


CASES_HERE = [
    case_status_shows_the_numbers,
    case_status_is_refreshed,
    case_status_plots_can_be_read,
    case_status_tells_ends_and_the_fullest_pool,
    case_status_is_asked_for_by_one_loop,
    case_status_says_what_is_wrong,
]
