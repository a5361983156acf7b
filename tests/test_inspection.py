"""What a person sees of a model: answers with reasons, the program behind one of them, every state on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hycop
from hycop.errors import InvalidInputError
from hycop.features import observed
from hycop.grid import Array
from hycop.inspection import common_times, inspected

PROBLEM = hycop.problem("ad1d")
SMALL = {"samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4, "budget": "gain"}


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    """As it was learned, on a grid of its own."""
    fitted = hycop.HyCOP(PROBLEM.dictionaries["upwind"]).fit(PROBLEM, **SMALL)
    return hycop.HyCOP.of(replace(fitted.model.opened(), refinement=2))


@pytest.fixture(scope="module")
def data() -> hycop.Dataset:
    """Some of the samples lie outside training, some do not."""
    return PROBLEM.sample(6, "ood", seed=1, times=[0.2, 0.5], estimated=0)


def test_features_are_computed_once_for_an_answer(
    model: hycop.HyCOP, data: hycop.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[tuple[int, ...]] = []
    moments = observed.moments_of

    def counted(u: Array, transforms: tuple[str, ...]) -> Array:
        computed.append(u.shape)
        return moments(u, transforms)

    monkeypatch.setattr(observed, "moments_of", counted)
    model.answer(data.query)
    assert computed == [data.query.u0[:, 0].shape]  # the modes of the only channel


def test_an_answer_says_of_each_sample_what_is_not_to_be_trusted(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    query = data.query
    answer = model.answer(query)
    assert np.array_equal(answer.states, model.solve(query).states)
    assert np.array_equal(answer.work, model.solve(query).work)
    assert list(answer.programs) == list(model.programs(query))
    view = model.model.scope.view
    assert np.array_equal(np.stack([*answer.features.values()], axis=1), view.features(query))
    assert answer.untrusted.any() and [bool(own) for own in answer.reasons] == answer.untrusted.tolist()
    outside = model.model.outside_training(query)
    for sample, own in enumerate(answer.reasons):
        assert set(own) == {name for name, flags in outside.items() if flags[sample]}
        alone = model.answer(query.take(slice(sample, sample + 1)))
        assert alone.reasons == (own,) and np.array_equal(alone.states[0], answer.states[sample])
    inside = model.answer(PROBLEM.sample(16, "train", seed=0, estimated=0).query)
    assert not inside.untrusted.any() and not inside.outside


def test_answers_to_a_file_are_those_of_the_model(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    found = hycop.answers(model, data)
    answer = model.answer(data.query)
    assert np.array_equal(found.states[:, 0], data.states[:, 0]) and np.array_equal(found.times, data.times)
    assert np.array_equal(found.truth, answer.states)
    assert found.untrusted is not None and found.reasons is not None
    assert np.array_equal(found.untrusted[:, 1:].reshape(-1), answer.untrusted) and not found.untrusted[:, 0].any()
    assert found.reasons[:, 1:].reshape(-1).tolist() == [", ".join(own) for own in answer.reasons]
    walled = hycop.answers(model, data, [0.3], boundary="wall")
    assert walled.setting.grid.boundary == ("wall",) and walled.times.shape == (6, 2)
    assert all("boundary wall" in text for text in walled.reasons[:, 1])  # type: ignore[index]
    with pytest.raises(InvalidInputError, match="times of their own"):
        common_times(replace(data, times=data.times * np.linspace(1, 2, 6)[:, None]))


def test_the_program_behind_an_answer(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    query = data.query
    found = inspected(model, query)
    answer = model.answer(query)
    assert found.written == answer.programs[0] and found.method == "HyCOP" and found.work == answer.work[0]
    assert found.features == {name: values[0] for name, values in answer.features.items()}
    assert found.params == {name: values[0] for name, values in query.setting.params.items()}
    assert found.to_json()["program"] == found.written.to_json()
    dictionary = model.dictionary
    scheme = inspected(hycop.splitting("strang x2"), query, dictionary)
    assert scheme.method == "Strang x2" and len(scheme.as_run) <= len(scheme.written) and not scheme.features
    with pytest.raises(InvalidInputError, match="composes a dictionary: give one"):
        inspected(hycop.splitting("strang"), query)


def test_a_trace_ends_where_the_answer_is(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    query = data.query.take(slice(0, 3))
    trace = model.trace(query)
    assert np.array_equal(trace.states[:, -1], model.solve(query).states)
    assert trace.states.shape == (3, 1 + trace.programs.ops.shape[1], *query.u0.shape[1:])
    some = model.trace(query, steps=[1, -1])
    assert np.array_equal(some.states, trace.states[:, [1, -1]])
