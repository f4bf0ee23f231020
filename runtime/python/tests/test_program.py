"""Programs on numpy arrays."""

import numpy
import pytest

import mlxcel


@pytest.fixture(scope="module")
def program(adam):
    return mlxcel.Program(adam)


def given(program):
    """Returns the first state, and inputs."""
    arguments = program.signatures[0].arguments
    state = {a.name: numpy.zeros(a.shape, a.dtype) for a in arguments if a.is_state}
    random = numpy.random.default_rng(3)
    inputs = {a.name: random.standard_normal(a.shape).astype(a.dtype) for a in arguments if not a.is_state}
    return state, inputs


def adam_in_numpy(state, x, y, rate=1e-3, b1=0.9, b2=0.999, epsilon=1e-8):
    """Returns the loss, for a check of the result's meaning."""
    error = x @ state["p['w']"] + state["p['b']"] - y
    return (error**2).mean()


def test_a_call_returns_results_and_keeps_states(program):
    state, inputs = given(program)
    step = program.function(state=state)
    loss = step(**inputs)
    assert loss.shape == () and loss.dtype == numpy.float32
    assert float(loss) == pytest.approx(float(adam_in_numpy(state, **inputs)), rel=1e-5)
    later = [float(step(**inputs)) for _ in range(50)]
    assert later[-1] < float(loss)
    assert float(step.read("count")) == 51
    step.set("count", numpy.float32(7))
    assert float(step.read("count")) == 7


def test_arguments_by_position_and_by_name(program):
    state, inputs = given(program)
    calls = [
        program.function(state=state)(inputs["x"], inputs["y"]),
        program.function(state=state)(inputs["x"], y=inputs["y"]),
        program.function(state=state, bind=inputs)(),
        program.function("main", state=state)(inputs["x"].tolist() and inputs["x"], inputs["y"]),
    ]
    assert len({float(loss) for loss in calls}) == 1


def test_arrays_that_lie_otherwise(program):
    state, inputs = given(program)
    expected = program.function(state=state)(**inputs)
    x = numpy.asfortranarray(inputs["x"])
    y = numpy.stack([inputs["y"], inputs["y"]], axis=-1)[..., 0]
    assert not x.flags.c_contiguous and not y.flags.c_contiguous
    assert program.function(state=state)(x, y) == expected

    class Speaks:
        """Speaks DLPack, and nothing else of arrays."""

        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    assert program.function(state=state)(Speaks(inputs["x"]), Speaks(inputs["y"])) == expected
    read = program.function(state=state).read("p['w']")
    assert numpy.from_dlpack(read).tolist() == state["p['w']"].tolist()


def test_what_is_refused(program):
    state, inputs = given(program)
    x, y = inputs["x"], inputs["y"]
    step = program.function(state=state)

    def refused(call):
        with pytest.raises(mlxcel.RequestError) as error:
            call()
        return error.value

    shape = refused(lambda: step(x[:3], y))
    assert (shape.found, shape.expected) == ("f32[3,8]", "f32[16,8]")
    assert shape.hint == "convert it before the call"
    assert refused(lambda: step(x.astype(numpy.float64), y)).found == "f64[16,8]"
    assert "found no argument y" in str(refused(lambda: step(x)))
    assert "found 3 arguments" in str(refused(lambda: step(x, y, x)))
    assert "found object" in str(refused(lambda: step(x, object())))
    assert "found the argument z" in str(refused(lambda: step(x, z=y)))
    assert "found no function nothing" in str(refused(lambda: program.function("nothing")))
    assert "which is a state" in str(refused(lambda: program.function(bind={"count": 1.0})))
    # None of these has run.
    assert float(step.read("count")) == 0


def test_functions_are_independent(program):
    state, inputs = given(program)
    first, second = (program.function(state=state, bind=inputs) for _ in range(2))
    first(), first(), second()
    assert (float(first.read("count")), float(second.read("count"))) == (2, 1)


def test_a_closed_program(adam):
    with mlxcel.Program(adam) as program:
        pass
    with pytest.raises(mlxcel.ClosedError):
        program.function().read("count")


def test_a_model_is_no_program(demo):
    with pytest.raises(mlxcel.BundleError, match="found the language model"):
        mlxcel.Program(demo)
