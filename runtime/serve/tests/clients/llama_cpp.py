"""Runs those tests of llama.cpp's server that apply to other servers of OpenAI's API, and lists the others with reasons.

    python3 llama_cpp.py LLAMA_CPP PORT [EMBEDDINGS_PORT]

LLAMA_CPP is a checkout. At PORT, mlxcel-serve has one bundle with a chat template; at EMBEDDINGS_PORT, one that embeds.
A test that is in no list runs: a newer checkout shows what is new. Three things differ from how llama.cpp runs them:

- paths have `/v1`, as OpenAI's have, where llama.cpp takes them without, too;
- the client of OpenAI names the model that is served, because the server refuses others;
- the text of an answer is any text, because the model is another one.
"""

import collections
import json
import os
import re
import sys
import urllib.request
from pathlib import Path

import openai
import pytest

NATIVE = "asks llama.cpp's own `/completion`, or for a field of its answers"
SETTING = "starts the server with a setting of llama.cpp"
TINYLLAMAS = "expects the tokens of the tinyllamas"
FINGERPRINT = "expects the version of llama.cpp in `system_fingerprint`"
OPENAI = "OpenAI's form is another one"

# Patterns of test names, the first that matches counts.
LEFT_OUT = [
    (r"test_compat_anthropic", "Anthropic's API is not served"),
    (r"test_compat_gcp", "Vertex AI's API is not served"),
    (r"test_compat_oai_responses", "`/v1/responses` is not served"),
    (r"test_ctx_shift", "the context is not shifted: a prompt that is too long is refused"),
    (r"test_infill", "`/infill` is not served"),
    (r"test_kv_keep_only_active|test_slot_save|_slots|test_sleep", "there are no slots and no sleep"),
    (r"test_lora", "adapters are not served"),
    (r"test_rerank", "`/rerank` is not served"),
    (r"test_router|test_stream\.py", "the router of llama.cpp: bundles are exchanged by `/admin/reload`"),
    (r"test_proxy|test_mcp_servers|test_tools_builtin|cors_proxy", "the server calls no other servers and no tools"),
    (r"test_vision_api|local_media|mtmd|mtm_error", "no images and no sound"),
    (r"test_speculative", "speculation is a field of a request, without a second model"),
    (r"test_metrics", "metrics have other names; promtool reads them in the server's own tests"),
    (r"test_basic\.py::test_(server_props|load_split_model|no_ui|server_model_aliases|server_multiple)", SETTING),
    (r"test_template\.py|test_chat_template(_apply|$|_assistant)|apply_chat_template", SETTING),
    (r"test_chat_completion\.py::test_(chat_completion\[|chat_completion_cached|return_progress)", TINYLLAMAS),
    (r"test_chat_completion\.py::test_chat_completion_with_openai_library", FINGERPRINT),
    (r"test_chat_completion\.py::test_(chat_completion_stream|logprobs_stream)", f"{OPENAI}: the first delta has \"\""),
    (r"test_completion_with_response_format\[response_format[012]-", f"{OPENAI}: a schema has a name"),
    (r"test_completion_with_(json_schema|grammar)", "a schema comes in `response_format`, and a grammar is Lark"),
    (r"test_invalid_chat_completion_req\[messages7", f"{OPENAI}: messages of an assistant can follow one another"),
    (r"timings_per_token|verbose|continue_final_message_vllm|multiple_choices|token_count", "a field or path of llama.cpp"),
    (r"test_context_size_exceeded", f"{OPENAI}: the error is `context_length_exceeded`"),
    (r"test_completion\.py::test_completion_with_openai_library", FINGERPRINT),
    (r"test_completion\.py::(?!test_completion_stream_with_openai_library$)|test_ignore_eos", NATIVE),
    (r"test_tokenize_with_bos", TINYLLAMAS),
    (r"test_tokenize_with_pieces", "`with_pieces` is not supported"),
    (r"test_tool_call\.py::.*STREAMED", f"{OPENAI}: the first delta has \"\""),
    (r"test_tool_call\.py::.*tools1", "the tools are longer than the demo model's context"),
    (r"test_security\.py::test_(incorrect|correct|openai_library|cors|access_static)", SETTING),
    (r"test_embedding.*(with_fa|pooling_none|mixed_input|content_text|usage|too_long)", "a field, a setting or a text of llama.cpp"),
]
SLOW = "downloads a model"


# The functions of the tests and of the client that are replaced, before they are.
originals = {}


class Run:
    """A plugin of pytest that chooses tests and counts what they gave."""

    def __init__(self, wanted, model):
        self.wanted, self.model = wanted, model
        self.left_out, self.ended = collections.Counter(), collections.Counter()

    def pytest_configure(self, config):
        import utils

        # Both runs share a process, and so what the first one put here.
        make_url = originals.setdefault("make_url", utils.ServerProcess.make_url)
        with_version = re.compile("/(chat/completions|models|embeddings)$")

        def mapped(server, path, host=None):
            path = "/health/ready" if path == "/health" else with_version.sub(r"/v1/\1", path.removeprefix("/v1"))
            return make_url(server, path, host)

        post = originals.setdefault("post", openai.OpenAI.post)

        def named(client, path, *, cast_to, body, **others):
            return post(client, path, cast_to=cast_to, body={**body, "model": self.model}, **others)

        utils.ServerProcess.make_url = mapped
        utils.match_regex = lambda _, text: isinstance(text, str) and text != ""
        openai.OpenAI.post = named

    def pytest_collection_modifyitems(self, config, items):
        kept = []
        for item in items:
            name = item.nodeid.removeprefix("unit/")
            reasons = [SLOW] if item.get_closest_marker("slow") else []
            reasons += [reason for pattern, reason in LEFT_OUT if re.search(pattern, name)]
            if reasons:
                self.left_out[name.split("::")[0], reasons[0]] += 1
            else:
                kept.append(item)
        items[:] = kept

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            self.ended[report.outcome] += 1


def main():
    checkout, *ports = sys.argv[1:]
    tests = Path(checkout).resolve() / "tools/server/tests"
    os.chdir(tests)
    sys.path.insert(0, str(tests))
    os.environ["DEBUG_EXTERNAL"] = "1"
    names = sorted(path.name for path in Path("unit").glob("test_*.py"))
    embeddings = ["test_embedding.py"]
    left_out, status = {}, 0
    for port, wanted in zip(ports, [[name for name in names if name not in embeddings], embeddings]):
        os.environ["PORT"] = port
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models") as answer:
            model = json.load(answer)["data"][0]["id"]
        run = Run(wanted, model)
        status |= pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", *[f"unit/{name}" for name in wanted]], [run])
        left_out.update(run.left_out)
        assert run.ended["passed"], "no test ran"
    print("\n| file | tests left out | reason |\n|---|---|---|")
    for (name, reason), count in sorted(left_out.items()):
        print(f"| {name} | {count} | {reason} |")
    return status


if __name__ == "__main__":
    sys.exit(main())
