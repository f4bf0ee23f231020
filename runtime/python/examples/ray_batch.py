"""Answers the prompts of a data set on the nodes of a cluster. Without one, Ray starts on this machine.

    python ray_batch.py registry.example/models/demo:1
"""

import sys

import ray

import mlxcel.ray

ray.init(log_to_driver=False)
beginnings = ["In the beginning", "And the LORD said", "Blessed are", "And he went"]
prompts = ray.data.from_items([{"prompt": text} for text in beginnings])
answers = mlxcel.ray.predict(prompts, sys.argv[1], options={"max_tokens": 8}, cache_size="64MiB")
for row in answers.iter_rows():
    print(row["prompt"] + row["text"], row["finish_reason"], row["completion_tokens"])
