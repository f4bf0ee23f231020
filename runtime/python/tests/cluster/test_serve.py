"""OpenAI's endpoints on several nodes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
import requests
from cluster import IS_FULL, alone, end, only_in_full, prompts
from load import LONGEST, Load, free_port, until
from ray import serve

import mlxcel.ray

TEXTS = prompts(60)
SECONDS = 8 if IS_FULL else 2


@pytest.fixture(scope="module")
def expected(demo) -> list[str]:
    return [text for text, *_ in alone(demo, TEXTS, max_tokens=24)]


class Served:
    """The application on nodes with one CPU each: as many as it has replicas at most."""

    def __init__(self, nodes, demo: str) -> None:
        self.nodes, self.demo = nodes, demo
        self.running: tuple | None = None
        nodes.remove_all()
        self.ids = nodes.add(3 if IS_FULL else 1)
        port = free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": port}, proxy_location="HeadOnly")
        self.url = f"http://127.0.0.1:{port}"

    def run(self, least: int, most: int, **options: object) -> None:
        """Runs it with these options. One that runs with them already is not replaced."""
        if self.running == (least, most, options):
            return
        autoscaling = {"upscale_delay_s": 0.5, "downscale_delay_s": 2, "look_back_period_s": 1.5}
        app = mlxcel.ray.app(
            self.demo,
            name="demo",
            min_replicas=least,
            max_replicas=most,
            target_requests=2,
            autoscaling=autoscaling,
            drain=5,
            **options,
        )
        serve.run(app, name="demo", logging_config={"log_level": "WARNING"})
        self.running = (least, most, options)

    def replicas(self) -> int:
        """Returns the replicas that run; 0 while another is stopped."""
        states = serve.status().applications["demo"].deployments["Server"].replica_states
        return states.get("RUNNING", 0) if not states.get("STOPPING", 0) else 0

    def load(self, **options: object) -> Load:
        return Load(f"{self.url}/v1", TEXTS, **options)


@pytest.fixture(scope="module")
def served(nodes, demo):
    served = Served(nodes, demo)
    yield served
    serve.shutdown()


def check(load: Load, expected: list[str]) -> None:
    """Checks that no request failed, and that each answer is that of the single process."""
    assert load.failures == []
    assert load.answers
    wrong = [number for number, text in load.answers if text != expected[number]]
    assert wrong == []


@only_in_full
def test_servers_come_with_load_and_go_without_a_failed_request(served, expected):
    served.run(1, 3)
    start = time.monotonic()
    load = served.load()
    times = {}
    load.clients(24)
    until("three replicas run", lambda: served.replicas() == 3)
    times["3"] = time.monotonic() - start
    time.sleep(SECONDS)
    load.clients(1)
    until("one replica runs", lambda: served.replicas() == 1)
    times["1"] = time.monotonic() - start
    load.stop()
    check(load, expected)
    print(f"{len(load.answers)} requests, none failed; replicas 1 -> 3 -> 1 after {times} s")


def test_answers_are_those_of_the_server(served):
    served.run(1, 1)
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["demo"]
    with pytest.raises(openai.BadRequestError, match="prompt: a string"):
        client.completions.create(model="demo", prompt=3)
    assert requests.get(f"{served.url}/health/ready").status_code == 200
    assert requests.get(f"{served.url}/openapi.json").json()["openapi"].startswith("3.1")
    refused = requests.post(f"{served.url}/admin/reload", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
    large = requests.post(f"{served.url}/v1/completions", data=b" " * (17 << 20))
    assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")


def test_clients_that_go_end_their_requests(served):
    count, tokens = 16, 1900
    body = {"prompt": "And", "max_tokens": tokens, "stream": True, "ignore_eos": True}

    def ask(_: int) -> None:
        with requests.post(f"{served.url}/v1/completions", json=body, stream=True) as answer:
            next(answer.iter_lines())

    def totals() -> dict:
        return requests.get(f"{served.url}/status.json").json()["models"][0]

    served.run(1, 1)
    until("one replica runs", lambda: served.replicas() == 1)
    before = totals()["totals"]["generated_tokens"]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(ask, range(count)))
    until("all have ended", lambda: totals()["running"] == 0)
    made = totals()["totals"]["generated_tokens"] - before
    print(f"{made} of {count * tokens} tokens were made")
    assert made < count * tokens / 2


@only_in_full
def test_a_stream_that_breaks_says_so(served):
    served.run(1, 1)
    until("one replica runs", lambda: served.replicas() == 1)
    handle = serve.get_deployment_handle("Server", "demo")
    server = handle.process.remote().result()
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    begun = threading.Semaphore(0)

    def ask(number: int) -> str:
        prompt = f"{number} And it came to pass"
        try:
            chunks = client.completions.create(
                model="demo", prompt=prompt, max_tokens=480, stream=True, extra_body={"ignore_eos": True}
            )
            for place, _ in enumerate(chunks):
                if place == 0:
                    begun.release()
        except openai.APIError as error:
            return error.message
        return "complete"

    count = 24
    with ThreadPoolExecutor(count) as pool:
        found = [pool.submit(ask, number) for number in range(count)]
        for _ in range(count // 2):
            assert begun.acquire(timeout=LONGEST), [one.result() for one in found if one.done()]
        end(server)
        ends = Counter(one.result() for one in found)
    print(dict(ends))
    broken = "the replica ended before the answer did: ask again"
    assert ends[broken] > 0 and set(ends) <= {broken, "complete"}


@only_in_full
def test_prompts_that_begin_alike_go_to_one_server(served):
    served.run(3, 3)
    until("three replicas run", lambda: served.replicas() == 3)
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    cached = 0
    for chat in range(12):
        # Longer than a page of the cache, of 64 tokens.
        first = {"role": "user", "content": f"{chat} " + "And it came to pass in those days, " * 12}
        turns = [[first], [first, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And then?"}]]
        for turn in turns:
            usage = client.chat.completions.create(model="demo", messages=turn, max_tokens=2).usage
        cached += usage.prompt_tokens_details.cached_tokens > 0
    print(f"{cached} of 12 second turns found their first one in the cache")
    assert cached == 12


@only_in_full
def test_more_requests_than_may_wait_are_refused(served):
    served.run(1, 1, max_requests=1, max_queued=2)
    until("one replica runs", lambda: served.replicas() == 1)

    def ask(number: int) -> tuple[int, str | None]:
        body = {"prompt": f"{number} And", "max_tokens": 300, "ignore_eos": True}
        answer = requests.post(f"{served.url}/v1/completions", json=body)
        return answer.status_code, answer.json().get("error", {}).get("code")

    with ThreadPoolExecutor(16) as pool:
        found = Counter(pool.map(ask, range(16)))
    print(dict(found))
    assert set(found) == {(200, None), (429, "queue_full")}


@only_in_full
def test_killed_servers_and_nodes_fail_no_request(served, expected):
    served.run(3, 3)
    until("three replicas run", lambda: served.replicas() == 3)
    # Whole answers: none has begun before it is complete, so that each can be made elsewhere.
    load = served.load(streams=False)
    load.clients(6)
    handle = serve.get_deployment_handle("Server", "demo")
    time.sleep(1)
    end(handle.process.remote().result())
    time.sleep(SECONDS)
    served.nodes.kill(served.ids[2])
    time.sleep(SECONDS + 3)
    load.stop()
    check(load, expected)
    print(f"{len(load.answers)} requests with a killed server and a killed node, none failed")


@only_in_full
def test_an_application_below_a_route_is_made_before_its_nodes(served):
    serve.delete("demo")
    served.nodes.remove_all()
    app = mlxcel.ray.app(served.demo, name="demo", drain=5)
    served.nodes.add(1)
    serve.run(app, name="llm", route_prefix="/llm", logging_config={"log_level": "WARNING"})
    url = f"{served.url}/llm"
    until("the route answers", lambda: requests.get(f"{url}/health/ready").status_code == 200)
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["demo"]
    refused = requests.post(f"{url}/admin/reload", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
