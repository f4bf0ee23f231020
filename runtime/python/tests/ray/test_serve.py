"""OpenAI's endpoints on several nodes."""
from __future__ import annotations
import time, json
import pytest
from conftest import IS_FULL, end, prompts
ray = pytest.importorskip("ray")
import mlxcel.ray
from ray import serve

def test_first(nodes, demo):
    nodes.add(3, cpus=1)
    serve.start(http_options={"host": "127.0.0.1", "port": 0 or 8011}, proxy_location="HeadOnly")
    t=time.time()
    serve.run(mlxcel.ray.app(demo, min_replicas=1, max_replicas=3), name="a")
    print("up", time.time()-t)
    import openai
    c = openai.OpenAI(base_url="http://127.0.0.1:8011/v1", api_key="none")
    print(c.models.list())
    t=time.time()
    print(c.completions.create(model="demo", prompt="And it came to pass", max_tokens=8).choices[0].text, time.time()-t)
    t=time.time()
    for e in c.completions.create(model="demo", prompt="And it came to pass", max_tokens=8, stream=True): print(repr(e.choices[0].text), end=" ")
    print(time.time()-t)
    import requests
    r=requests.get("http://127.0.0.1:8011/openapi.json"); print(r.status_code, r.headers, len(r.content))
    r=requests.post("http://127.0.0.1:8011/v1/completions", json={"prompt": 3}); print(r.status_code, r.headers, r.content)
    r=requests.post("http://127.0.0.1:8011/admin/reload", json={"prompt": 3}); print(r.status_code, r.headers, r.content)
    serve.shutdown()
