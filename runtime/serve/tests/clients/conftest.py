"""Clients of a server whose address and key are options of pytest."""

import openai
import pytest


def pytest_addoption(parser):
    parser.addoption("--url", required=True, help="the server, such as http://127.0.0.1:8080")
    parser.addoption("--key", default="none", help="an API key, if the server needs one")


@pytest.fixture(scope="session")
def url(request):
    return request.config.getoption("--url")


@pytest.fixture(scope="session")
def client(request, url):
    with openai.OpenAI(
        base_url=url + "/v1", api_key=request.config.getoption("--key"), max_retries=0, timeout=60
    ) as client:
        yield client


@pytest.fixture(scope="session")
def models(client):
    return list(client.models.list())


@pytest.fixture(scope="session")
def model(models):
    """The first model that generates text."""
    return next(model.id for model in models if model.task == "generation")
