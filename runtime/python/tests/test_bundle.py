"""Bundles, their errors and their origin."""

import os
import shutil
import subprocess
import warnings

import pytest

import mlxcel


def test_a_bundle_says_what_it_is(demo):
    bundle = mlxcel.Bundle(demo)
    assert bundle.kind == "model" and bundle.digest.startswith("blake3:")
    assert bundle.manifest["family"] == "llama"
    assert bundle.verify() is None
    assert any(target.runs for target in bundle.check())
    assert bundle.check("cuda") == []
    assert "family" in str(bundle)
    assert bundle.diff(bundle) == {}
    assert bundle == mlxcel.Bundle(demo) and len({bundle, mlxcel.Bundle(demo)}) == 1


def test_two_bundles_differ(demo, adam):
    differences = mlxcel.Bundle(demo).diff(mlxcel.Bundle(adam))
    assert "kind" in differences and "model" in differences["kind"]


def test_a_bundle_that_is_not_there(tmp_path):
    with pytest.raises(mlxcel.BundleError) as error:
        mlxcel.Bundle(tmp_path / "nothing")
    assert error.value.message.endswith("is not a bundle: it does not exist")
    assert "mlxcel-bundle list" in error.value.hint
    with pytest.raises(mlxcel.BundleError, match="has no manifest.toml"):
        mlxcel.Engine(tmp_path)


def test_a_bundle_that_came_with_the_package(demo, tmp_path, monkeypatch):
    mlxcel.Bundle(demo).copy(folder=tmp_path / "share/mlxcel/shipped.bundle")
    with pytest.raises(mlxcel.BundleError, match="does not exist"):
        mlxcel.Bundle("shipped", store=tmp_path / "store")
    # As in a virtual environment, or below the folder of `pip install --target`.
    for package in ("lib/python3/site-packages/mlxcel/__init__.py", "mlxcel/__init__.py"):
        monkeypatch.setattr(mlxcel, "__file__", os.fspath(tmp_path / package))
        bundle = mlxcel.Bundle("shipped", store=tmp_path / "store")
        assert bundle.path == os.fspath(tmp_path / "share/mlxcel/shipped.bundle")
        assert bundle.digest == mlxcel.Bundle(demo).digest and bundle.verify() is None
        with pytest.raises(mlxcel.BundleError, match="does not exist"):
            mlxcel.Bundle("../shipped", store=tmp_path / "store")


def test_a_damaged_bundle(demo, tmp_path):
    copy = tmp_path / "copy"
    mlxcel.Bundle(demo).copy(folder=copy)
    largest = max((copy / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    with open(largest, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(mlxcel.BundleError, match="digest"):
        mlxcel.Bundle(copy).verify()


def test_signatures(demo, tmp_path):
    program = os.environ.get("MLXCEL_TEST_PROGRAMS")
    if program is None:
        pytest.skip("MLXCEL_TEST_PROGRAMS names no folder")
    key = tmp_path / "k.key"
    subprocess.run(
        [f"{program}/mlxcel-bundle", "keygen", "--out", key, "--no-password"], check=True, capture_output=True
    )
    public = (tmp_path / "k.pub").read_text().splitlines()[-1]
    bundle = mlxcel.Bundle(demo).copy(folder=tmp_path / "signed")
    with pytest.raises(mlxcel.SignatureError) as error:
        bundle.verify(public)
    assert error.value.found.startswith("no signature")
    id = bundle.sign(key, comment="for tests")
    assert bundle.verify(public) == (id, "for tests")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine = mlxcel.Engine(bundle.path, require_signature=public)
    assert engine.generate("And", max_tokens=1).tokens
    with pytest.raises(mlxcel.SignatureError):
        mlxcel.Engine(demo, require_signature=public)


def test_a_bundle_of_unknown_origin_has_a_warning(demo, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(demo, copy)
    with pytest.warns(mlxcel.OriginWarning, match="was not compiled here and is not signed"):
        mlxcel.Engine(copy, store=tmp_path / "store")


def test_names_of_a_store(demo, tmp_path):
    stored = mlxcel.Bundle(demo, store=tmp_path / "store").copy(name="demo")
    assert stored.name == "demo"
    engine = mlxcel.Engine("demo", store=tmp_path / "store")
    assert engine.digest == stored.digest
    with pytest.raises(mlxcel.BundleError, match="dem is not a bundle"):
        mlxcel.Bundle("dem", store=tmp_path / "store")


def test_a_registry_that_is_not_there(demo, tmp_path):
    with pytest.raises(mlxcel.BundleError, match="127.0.0.1:9"):
        mlxcel.Bundle.pull("127.0.0.1:9/demo:1", store=tmp_path / "store")
    with pytest.raises(mlxcel.BundleError, match="127.0.0.1:9"):
        mlxcel.Bundle.check_remote("127.0.0.1:9/demo:1")
    with pytest.raises(mlxcel.BundleError) as error:
        mlxcel.Bundle(demo).push("not a reference")
    assert error.value.hint
