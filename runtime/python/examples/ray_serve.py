"""Serves a bundle with OpenAI's endpoints on the nodes of a cluster, and asks it.

    python ray_serve.py registry.example/models/demo:1 8000
"""

import sys

import openai
from ray import serve

import mlxcel.ray

bundle, port = sys.argv[1], int(sys.argv[2])
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(mlxcel.ray.app(bundle, name="demo", min_replicas=1, max_replicas=4))

client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
stream = client.completions.create(
    model="demo", prompt="And it came to pass", max_tokens=12, temperature=0, stream=True
)
for chunk in stream:
    print(chunk.choices[0].text, end="", flush=True)
print()
serve.shutdown()
