"""Bad arguments, forks and signals."""

import importlib
import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

import mlxcel
from mlxcel.engine import _token


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokenz": 3}, "found the argument max_tokenz, expected another one, such as max_tokens"),
        ({"temperature": "hot"}, "temperature: found 'hot', expected a float"),
        ({"max_tokens": -1}, "max_tokens: found -1, expected an int of 0 or more"),
        ({"stop": 3}, "stop: found 3, expected a str or a list of them"),
        ({"logit_bias": [1]}, "logit_bias: found [1], expected a dict of token ids and floats"),
        ({"top_p": 2.0}, "top_p is 2, expected above 0 and at most 1"),
        ({"regex": "("}, "the grammar cannot be used"),
        ({"regex": "a", "json_schema": {}}, "found several of json_schema, regex and grammar"),
        ({"json_schema": "{"}, "the schema is not JSON"),
    ],
)
def test_options(engine, options, message):
    with pytest.raises((TypeError, ValueError)) as error:
        engine.generate("a", **options)
    assert str(error.value).startswith(message) or message in str(error.value)


@pytest.mark.parametrize("prompt", [5, b"x", {"a": 1}, None, [None], [1.5, "a"], object()])
def test_prompts_of_another_type(engine, prompt):
    with pytest.raises((TypeError, ValueError)):
        engine.generate(prompt, max_tokens=1)


@pytest.mark.parametrize(("prompt", "found"), [([1, 2.0], "2.0"), ([1, "2"], "'2'"), ([1, None], "None")])
def test_tokens_that_are_no_integers(engine, prompt, found):
    for use in (
        lambda: engine.generate(prompt, max_tokens=1),
        lambda: engine.stream(prompt, max_tokens=1),
        lambda: engine.score(prompt),
        lambda: engine.score(prompt, context=[1]),
    ):
        with pytest.raises(TypeError) as error:
            use()
        assert str(error.value) == f"prompt: found the token {found}, expected integers"


def test_tokens_out_of_range(engine):
    with pytest.raises(mlxcel.RequestError, match="expected 0 to") as error:
        engine.generate([1, 99_999_999])
    assert error.value.hint
    with pytest.raises(mlxcel.RequestError, match="tokens, expected at most"):
        engine.generate([1] * (engine.context + 1))
    with pytest.raises(mlxcel.RequestError, match="found the token -1, expected 0 to"):
        engine.generate([1, -1])


@pytest.mark.parametrize("token", [-1, 2**32, -(2**63)])
def test_tokens_that_no_vocabulary_has(token):
    with pytest.raises(mlxcel.RequestError) as error:
        _token(token)
    assert error.value.message == f"prompt: found the token {token}, expected 0 to 4294967295"
    assert (error.value.found, error.value.expected) == (f"the token {token}", "0 to 4294967295")
    assert error.value.hint


def test_one_bad_prompt_of_many_ends_none_half_done(engine):
    with pytest.raises(mlxcel.RequestError):
        engine.generate(["a", [99_999_999], "b"], max_tokens=4)


@pytest.mark.parametrize(
    "messages", ["hello", [3], [{"role": 1}], [{"role": "user", "content": 3}], [{"role": "user", "content": [3]}]]
)
def test_chats_of_another_form(engine, messages):
    with pytest.raises((mlxcel.RequestError, TypeError)):
        engine.chat(messages)


def test_a_chat_that_the_template_refuses(engine):
    with pytest.raises(mlxcel.RequestError, match="the chat template failed: ") as error:
        engine.chat([{"role": "assistant", "content": "Hello", "tool_calls": "none"}])
    assert error.value.hint == "give messages as the template takes them, or use generate"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "rocm"}, "unknown device `rocm`"),
        ({"cache_size": "much"}, 'found "much", expected a size'),
        ({"cache_size": 0}, "expected a size"),
        ({"context": 100_000}, "context of 100000 tokens, expected 1 to "),
        ({"require_signature": "no key"}, "invalid public key"),
        ({"device": "cuda:7"}, "no target of this bundle"),
    ],
)
def test_options_of_engines(demo, options, message):
    with pytest.raises(mlxcel.Error) as error:
        mlxcel.Engine(demo, **options)
    assert message in str(error.value)


def test_a_closed_engine(demo):
    engine = mlxcel.Engine(demo)
    stream = engine.stream("And", max_tokens=500, ignore_eos=True)
    engine.close()
    engine.close()
    with pytest.raises(mlxcel.ClosedError, match="the engine was closed"):
        engine.generate("a")
    try:
        list(stream)
    except mlxcel.ClosedError:
        # It had not begun.
        return
    assert stream.answer.finish_reason in ("cancelled", "context", "length")


def test_a_full_queue(demo):
    engine = mlxcel.Engine(demo, queue=1)
    with pytest.raises(mlxcel.QueueFullError, match="the queue is full"):
        streams = [engine.stream("And", max_tokens=300, ignore_eos=True) for _ in range(100)]
        del streams


@pytest.fixture
def run():
    """Starts Python with some code. What still runs after the test is killed."""
    processes = []

    def start(code: str, *arguments: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_a_forked_child_is_refused(demo, run):
    code = """
        import multiprocessing, os, sys, mlxcel
        engine = mlxcel.Engine(sys.argv[1])
        stream = engine.stream("And", max_tokens=4)
        child = os.fork()
        if child == 0:
            for use in (lambda: engine.generate("a"), lambda: next(stream), engine.close):
                try:
                    use()
                except mlxcel.ForkError as error:
                    assert "spawn" in error.hint
                else:
                    os._exit(3)
            # An orderly end drops the engine, and must not wait for threads that are not here.
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(len(engine.generate("And", max_tokens=3).tokens))
    """
    process = run(code, demo)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "3"), errors


def test_a_bundle_can_be_loaded_in_a_child(demo, run):
    code = """
        import multiprocessing, sys, mlxcel
        def work(path, queue):
            queue.put(mlxcel.Engine(path).generate("And", max_tokens=3).tokens)
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            child = context.Process(target=work, args=(sys.argv[1], queue))
            child.start()
            print(len(queue.get(timeout=30)))
            child.join()
    """
    process = run(code, demo)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "3"), errors


def test_a_child_of_a_process_that_opened_a_bundle(demo, run):
    code = """
        import os, sys, mlxcel
        mlxcel.Bundle(sys.argv[1])
        child = os.fork()
        if child == 0:
            try:
                mlxcel.Engine(sys.argv[1])
            except mlxcel.ForkError as error:
                assert "spawn" in error.hint
                os._exit(0)
            os._exit(3)
        print(os.waitpid(child, 0)[1])
    """
    process = run(code, demo)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "0"), errors


def test_a_child_of_a_process_that_opened_a_bundle_moves_none(demo, run, tmp_path):
    code = """
        import os, sys, mlxcel
        demo, folder = sys.argv[1:]
        bundle = mlxcel.Bundle(demo, store=folder)
        child = os.fork()
        if child == 0:
            for use in (
                lambda: bundle.copy(folder=folder + "/copy"),
                lambda: bundle.copy(name="copy"),
                lambda: bundle.push("127.0.0.1:9/demo:1"),
                lambda: mlxcel.Bundle.pull("127.0.0.1:9/demo:1", store=folder),
            ):
                try:
                    use()
                except mlxcel.ForkError as error:
                    assert "spawn" in error.hint
                else:
                    os._exit(3)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """
    process = run(code, demo, os.fspath(tmp_path))
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "0"), errors


@pytest.mark.parametrize(
    "call",
    [
        "engine.generate('And', max_tokens=500, ignore_eos=True)",
        "engine.generate(['And'] * 500, max_tokens=400, ignore_eos=True)",
        "list(engine.stream('And', max_tokens=500, ignore_eos=True))",
        "engine.score([5] * 500)",
    ],
)
def test_ctrl_c_ends_a_wait(demo, run, call):
    code = f"""
        import signal, sys, mlxcel
        # A shell starts what runs in the background with this signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        engine = mlxcel.Engine(sys.argv[1])
        engine.generate("And", max_tokens=1)
        try:
            print("ready", flush=True)
            while True:
                {call}
        except KeyboardInterrupt:
            # The engine can be used again.
            print("stopped", len(engine.generate("And", max_tokens=2).tokens))
    """
    process = run(code, demo)
    assert process.stdout.readline().strip() == "ready"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "stopped 2"), errors


@pytest.mark.parametrize("call", ["pull(name, store=store)", "resolve(name)", "check_remote(name)"])
def test_ctrl_c_ends_a_transfer(run, tmp_path, call):
    code = f"""
        import signal, sys, mlxcel
        signal.signal(signal.SIGINT, signal.default_int_handler)
        name, store = sys.argv[1:]
        try:
            print("ready", flush=True)
            mlxcel.Bundle.{call}
        except KeyboardInterrupt:
            print("stopped")
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = run(code, f"127.0.0.1:{silent.getsockname()[1]}/models/demo:1", os.fspath(tmp_path))
        assert process.stdout.readline().strip() == "ready"
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=30)
    assert (process.returncode, out.strip()) == (0, "stopped"), errors


def test_a_cluster_without_ray(monkeypatch):
    # As if it were not installed, where it is.
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(mlxcel.PackageError, match="found no package ray") as error:
        importlib.import_module("mlxcel.ray")
    assert error.value.hint == "pip install 'mlxcel[ray]'"
    assert isinstance(error.value, ImportError)
