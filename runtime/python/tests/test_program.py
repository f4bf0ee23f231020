"""Programs on numpy arrays."""

from dataclasses import replace

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


def test_arrays_of_the_other_order_of_bytes(program):
    def swapped(arrays):
        return {name: array.astype(array.dtype.newbyteorder()) for name, array in arrays.items()}

    state, inputs = given(program)
    state["count"] = numpy.full((), 7, numpy.float32)
    expected = program.function(state=state)(**inputs)
    step = program.function(state=swapped(state))
    assert float(step.read("count")) == 7
    assert step(**swapped(inputs)) == expected
    step.set("count", numpy.array(5, numpy.dtype(numpy.float32).newbyteorder()))
    assert float(step.read("count")) == 5
    assert program.function(state=state, bind=swapped(inputs))() == expected


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


FOUR, SEVEN = (numpy.ones(count, numpy.float32) for count in (4, 7))


def test_calls_of_other_shapes_go_on_with_the_state(sums):
    with mlxcel.Program(sums) as program:
        add = program.function(bind={"factor": numpy.float32(2)}, state={"total": numpy.float32(1)})
        assert [float(add(x)) for x in (FOUR, SEVEN, FOUR, SEVEN)] == [8, 14, 8, 14]
        # The state and the result are those of the last call.
        assert (float(add.read("total")), float(add.read("sum"))) == (45, 14)
        add.set("total", numpy.float32(100))
        factor = numpy.array(3, numpy.float32)
        add.set("factor", factor)
        factor[()] = 0
        assert [float(add(x)) for x in (FOUR, SEVEN)] == [12, 21]
        assert float(add.read("next")) == 133
        # A refused call changes nothing.
        with pytest.raises(mlxcel.RequestError) as error:
            add(numpy.ones(5, numpy.float32))
        assert (error.value.found, error.value.expected) == ("f32[5]", "f32[7]")
        assert float(add.read("total")) == 133
        # What is set before the first call is the first state, whatever the shape of that.
        add = program.function(bind={"factor": numpy.float32(1)})
        add.set("total", numpy.float32(10))
        assert float(add(SEVEN)) == 7 and float(add.read("total")) == 17


def test_a_state_of_another_shape_is_refused(sums):
    with mlxcel.Program(sums) as program:
        four, seven = program.signatures
        longer = tuple(replace(a, shape=(7,)) if a.is_state else a for a in seven.arguments)
        signatures = (four, replace(seven, arguments=longer))
        bind, state = {"factor": numpy.float32(1)}, {"total": numpy.float32(0)}
        add = mlxcel.Function(program._native, signatures, bind, state)
        add(FOUR)
        with pytest.raises(mlxcel.RequestError, match='state "total": found') as error:
            add(SEVEN)
        assert error.value.found == f"float32[] of {four.entry}"
        assert error.value.expected == f"float32[7] of {seven.entry}"
        assert error.value.hint
        assert float(add(FOUR)) == 4 and float(add.read("total")) == 8


def test_a_closed_program(adam):
    with mlxcel.Program(adam) as program:
        pass
    with pytest.raises(mlxcel.ClosedError):
        program.function().read("count")


def test_a_model_is_no_program(demo):
    with pytest.raises(mlxcel.BundleError, match="found the language model"):
        mlxcel.Program(demo)
