"""Programs: as data, simplified, run, measured and traced; and what is said when they cannot run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.execution import distances, measure, run, simplify, trace
from hycop.grid import Grid, restrict
from hycop.primitive import transform_work
from hycop.problems import PROBLEMS
from hycop.program import EMPTY, Program, ProgramBatch, Step
from hycop.query import Query, Setting
from tests.helpers import DICTIONARY, EXACT_FLOWS, query_of

properties = settings(max_examples=40, deadline=None, derandomize=True, database=None)
durations = st.sampled_from([0.0, 0.01, 0.05, 0.1]) | st.floats(0.0, 0.2)


def programs_of(dictionary: Dictionary, longest: int = 6) -> st.SearchStrategy[Program]:
    steps = st.tuples(st.sampled_from(dictionary.names), durations)
    return st.lists(steps, max_size=longest).map(lambda pairs: Program.of(*pairs))


def batch_of(*programs: Program, names: tuple[str, ...] = DICTIONARY.names) -> ProgramBatch:
    return ProgramBatch.of(programs, names)


class TestData:
    def test_prints_on_one_line(self) -> None:
        program = Program.of(("advection", 0.1), ("reaction", 1 / 3))
        assert str(program) == "advection 0.1 → reaction 0.3333"
        assert str(Program(())) == "(no steps)"

    @properties
    @given(programs_of(DICTIONARY))
    def test_json_brings_back_the_same(self, program: Program) -> None:
        assert Program.from_json(json.loads(json.dumps(program.to_json()))) == program

    @properties
    @given(programs_of(DICTIONARY).filter(len))
    def test_parse_reads_what_is_printed(self, program: Program) -> None:
        read = Program.parse(str(program))
        assert [step.primitive for step in read] == [step.primitive for step in program]
        np.testing.assert_allclose([s.duration for s in read], [s.duration for s in program], rtol=1e-3, atol=1e-12)

    @pytest.mark.parametrize("text", ["", "advection", "advection fast", "advection 0.1 0.2", "advection 0.1 →"])
    def test_parse_names_the_step_that_is_none(self, text: str) -> None:
        with pytest.raises(InvalidInputError, match=r"program step '.*': a primitive and a duration"):
            Program.parse(text)

    @pytest.mark.parametrize(
        "steps", [None, 3, "abc", [3], [{"primitive": "a"}], [{"primitive": "a", "duration": "x"}]]
    )
    def test_bad_json_is_refused(self, steps: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"program: a list of .*'primitive'"):
            Program.from_json(steps)

    @pytest.mark.parametrize("duration", [np.nan, np.inf, -np.inf])
    def test_durations_are_finite(self, duration: float) -> None:
        with pytest.raises(InvalidInputError, match="step 'advection': duration is"):
            Step("advection", duration)
        with pytest.raises(InvalidInputError, match=r"duration is .* at step 2 of sample 1"):
            ProgramBatch(("a",), np.zeros((2, 2), dtype=int), np.array([[1.0, 1.0], [1.0, duration]]))

    @properties
    @given(st.lists(programs_of(DICTIONARY), min_size=1, max_size=4))
    def test_batches_are_padded_to_the_longest(self, programs: list[Program]) -> None:
        batch = batch_of(*programs)
        assert list(batch) == programs
        assert batch.ops.shape == (len(programs), max(map(len, programs)))
        assert batch.lengths().tolist() == [len(program) for program in programs]
        assert not batch.durations[batch.ops == EMPTY].any()
        assert [batch.take(slice(i, i + 1))[0] for i in range(len(batch))] == programs

    @properties
    @given(st.lists(programs_of(DICTIONARY), min_size=1, max_size=3), st.integers(1, 4))
    def test_programs_of_more_substeps_take_the_same_time(self, programs: list[Program], substeps: int) -> None:
        batch = batch_of(*programs)
        again = batch.with_substeps(substeps)
        np.testing.assert_array_equal(again.lengths(), substeps * batch.lengths())
        np.testing.assert_allclose(again.time_per_primitive(), batch.time_per_primitive(), atol=1e-15)
        for program, original in zip(again, programs, strict=True):
            assert [s.primitive for s in program] == [s.primitive for s in original] * substeps
        graded = batch.with_graded_substeps(substeps, 2.0)
        np.testing.assert_array_equal(graded.ops, again.ops)
        np.testing.assert_allclose(graded.time_per_primitive(), batch.time_per_primitive(), atol=1e-15)
        parts = np.split(graded.durations, substeps, axis=1)
        for j, part in enumerate(parts):  # (j/m)² grows by (2j + 1)/m²
            np.testing.assert_allclose(part, (2 * j + 1) / substeps**2 * batch.durations, atol=1e-15)

    def test_time_per_primitive_adds_up_the_steps(self) -> None:
        batch = batch_of(Program.of(("advection", 0.1), ("reaction", 0.3), ("advection", 0.2)), Program(()))
        np.testing.assert_allclose(batch.time_per_primitive(), [[0.1 + 0.2, 0.0, 0.3, 0.0], [0.0] * 4])

    @pytest.mark.parametrize("substeps", [0, -1])
    def test_substeps_are_a_positive_number(self, substeps: int) -> None:
        with pytest.raises(InvalidInputError, match=f"cut into {substeps} substeps"):
            batch_of(Program(())).with_substeps(substeps)
        with pytest.raises(InvalidInputError, match=f"cut into {substeps} substeps"):
            batch_of(Program(())).with_graded_substeps(substeps, 1.5)

    def test_unknown_names_bring_the_nearest(self) -> None:
        with pytest.raises(UnknownNameError, match="unknown primitive 'advektion': did you mean advection"):
            batch_of(Program.of(("advektion", 0.1)))

    @pytest.mark.parametrize(
        ("ops", "taus", "message"),
        [
            ([0, 0], [0.1, 0.1], r"ops \(2,\) and durations \(2,\)"),
            ([[0, 0]], [[0.1]], r"ops \(1, 2\) and durations \(1, 1\)"),
            ([[2]], [[0.1]], "ops must index the 2 names"),
            ([[-2]], [[0.1]], "ops must index the 2 names"),
        ],
    )
    def test_arrays_must_fit(self, ops: Any, taus: Any, message: str) -> None:
        with pytest.raises(InvalidInputError, match=f"programs: {message}"):
            ProgramBatch(("a", "b"), np.array(ops), np.array(taus))


class TestSimplify:
    @properties
    @given(st.lists(programs_of(EXACT_FLOWS), min_size=3, max_size=3))
    def test_it_changes_nothing_but_the_length(self, programs: list[Program]) -> None:
        query, batch = query_of(3), batch_of(*programs, names=EXACT_FLOWS.names)
        short = simplify(batch, EXACT_FLOWS, query.setting)
        assert (short.lengths() <= batch.lengths()).all()
        assert (short.durations[short.ops != EMPTY] != 0).all()
        np.testing.assert_allclose(short.time_per_primitive(), batch.time_per_primitive(), atol=1e-15)
        after_each = trace(batch, EXACT_FLOWS, query).states[:, -1]
        np.testing.assert_allclose(run(short, EXACT_FLOWS, query), after_each, rtol=0, atol=1e-12)

    @properties
    @given(st.lists(programs_of(DICTIONARY), min_size=2, max_size=2))
    def test_it_is_what_run_executes_and_idempotent(self, programs: list[Program]) -> None:
        query, batch = query_of(2), batch_of(*programs)
        once = simplify(batch, DICTIONARY, query.setting)
        twice = simplify(once, DICTIONARY, query.setting)
        assert list(twice) == list(once)
        np.testing.assert_array_equal(run(once, DICTIONARY, query), run(batch, DICTIONARY, query))

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("advection 0.1, advection 0.2", "advection 0.3"),
            ("advection 0.1, diffusion 0.1, advection 0.2", "advection 0.3, diffusion 0.1"),
            ("diffusion 0.1, advection 0.1, diffusion 0.2, advection 0.1", "diffusion 0.3, advection 0.2"),
            ("advection 0.1, reaction 0.1, advection 0.1", "advection 0.1, reaction 0.1, advection 0.1"),
            ("advection 0.1, reaction 0, advection 0.1", "advection 0.2"),
            ("muscl 0.1, muscl 0.1, diffusion 0.1, muscl 0.1", "muscl 0.2, diffusion 0.1, muscl 0.1"),
            ("reaction 0, advection 0", ""),
        ],
    )
    def test_by_example(self, before: str, after: str) -> None:
        short = simplify(batch_of(Program.parse(before)), DICTIONARY, query_of(1).setting)[0]
        expected = Program.parse(after) if after else Program(())
        assert [step.primitive for step in short] == [step.primitive for step in expected]
        np.testing.assert_allclose([s.duration for s in short], [s.duration for s in expected], rtol=1e-15)

    def test_walls_keep_apart_what_periodic_boxes_fuse(self) -> None:
        program = Program.parse("muscl 0.1, diffusion 0.1, muscl 0.1")
        short = simplify(batch_of(program), DICTIONARY, query_of(1, "wall").setting)
        assert list(short) == [program]


class TestRun:
    def test_it_is_the_flows_one_after_the_other(self) -> None:
        query = query_of(3)
        program = Program.parse("muscl 0.05, reaction 0.2, advection 0.1, diffusion 0.1, reaction 0.3, diffusion 0.2")
        u = query.u0
        for step in program:
            u = DICTIONARY[step.primitive].flow(u, np.full(3, step.duration), query.setting)
        np.testing.assert_allclose(run(program, DICTIONARY, query), u, rtol=0, atol=1e-13)

    @properties
    @given(st.lists(programs_of(DICTIONARY), min_size=4, max_size=4))
    def test_samples_run_together_as_they_run_alone(self, programs: list[Program]) -> None:
        query = query_of(4)
        together = measure(batch_of(*programs), DICTIONARY, query)
        for sample, program in enumerate(programs):
            alone = measure(program, DICTIONARY, query.take(slice(sample, sample + 1)))
            np.testing.assert_array_equal(together.states[sample], alone.states[0])
            assert together.work[sample] == alone.work[0]

    @properties
    @given(st.lists(programs_of(DICTIONARY), min_size=5, max_size=5), st.integers(1, 5000))
    def test_a_cap_on_memory_changes_no_bit(self, programs: list[Program], memory: int) -> None:
        query, batch = query_of(5), batch_of(*programs)
        ample, tight = measure(batch, DICTIONARY, query), measure(batch, DICTIONARY, query, memory=memory)
        np.testing.assert_array_equal(tight.states, ample.states)
        np.testing.assert_array_equal(tight.work, ample.work)
        np.testing.assert_array_equal(run(batch, DICTIONARY, query, memory=memory), ample.states)

    def test_one_program_serves_all(self) -> None:
        query, program = query_of(3), Program.parse("advection 0.1, reaction 0.2")
        np.testing.assert_array_equal(run(program, DICTIONARY, query), run(batch_of(*[program] * 3), DICTIONARY, query))

    def test_no_steps_leave_the_state_as_it_is(self) -> None:
        query = query_of(2)
        states = run(Program(()), DICTIONARY, query)
        np.testing.assert_array_equal(states, query.u0)
        assert not np.shares_memory(states, query.u0)

    def test_the_query_is_left_alone(self) -> None:
        query = query_of(2)
        before = query.u0.copy()
        run(batch_of(Program.parse("muscl 0.1, reaction 0.1"), Program.parse("reaction 0.1")), DICTIONARY, query)
        np.testing.assert_array_equal(query.u0, before)

    def test_single_precision_stays_single(self) -> None:
        query = query_of(2)
        single = Query(query.u0.astype(np.float32), query.setting, query.time)
        program = Program.parse("advection 0.1, reaction 0.1, muscl 0.1, diffusion 0.1")
        states = run(program, DICTIONARY, single)
        assert states.dtype == np.float32
        np.testing.assert_allclose(states, run(program, DICTIONARY, query), atol=1e-6)

    @pytest.mark.parametrize("count", [1, 3])
    def test_programs_and_queries_must_be_as_many(self, count: int) -> None:
        programs = batch_of(*[Program.parse("reaction 0.1")] * count)
        for act in (run, measure, trace):
            with pytest.raises(InvalidInputError, match=f"{count} programs for 2 queries"):
                act(programs, DICTIONARY, query_of(2))

    def test_names_must_be_in_the_dictionary(self) -> None:
        programs = batch_of(Program.of(("reactoin", 0.1)), names=("reactoin",))
        with pytest.raises(UnknownNameError, match="'reactoin': did you mean reaction"):
            run(programs, DICTIONARY, query_of(1))

    def test_boundaries_must_suit_the_primitives_in_use(self) -> None:
        query = query_of(1, "wall")
        run(Program.parse("muscl 0.1, diffusion 0.1"), DICTIONARY, query)
        with pytest.raises(IncompatibleError, match=r"'advection' cannot handle the wall .*use one that can: muscl"):
            run(Program.parse("diffusion 0.1, advection 0.1"), DICTIONARY, query)

    @pytest.mark.parametrize("name", ["diffusion", "muscl"])
    def test_backwards_is_refused_for_one_way_primitives(self, name: str) -> None:
        programs = batch_of(Program.parse("reaction 0.1"), Program.of(("reaction", 0.1), (name, -0.1)))
        for act in (run, measure, trace):
            with pytest.raises(IncompatibleError, match=f"step 2 of sample 1: duration is -0.1, but '{name}' cannot"):
                act(programs, DICTIONARY, query_of(2))

    def test_backwards_undoes_forwards_for_the_others(self) -> None:
        query = query_of(2)
        there = Program.parse("reaction 0.3, advection 0.2, reaction 0.1")
        back = Program.of(*((step.primitive, -step.duration) for step in reversed(there.steps)))
        away = Query(run(there, DICTIONARY, query), query.setting, query.time)
        assert np.abs(away.u0 - query.u0).max() > 0.1
        np.testing.assert_allclose(run(back, DICTIONARY, away), query.u0, rtol=0, atol=1e-13)


class TestMeasureAndTrace:
    @properties
    @given(
        st.lists(programs_of(DICTIONARY), min_size=3, max_size=3),
        st.integers(1, 2),
        st.sampled_from([np.float32, np.float64]),
    )
    def test_a_trace_runs_what_run_runs(self, programs: list[Program], refinement: int, dtype: type) -> None:
        """To the bit, also where neighbours are merged or share a transform."""
        query, batch = query_of(3), batch_of(*programs)
        query = Query(query.u0.astype(dtype), query.setting, query.time)
        path = trace(batch, DICTIONARY, query, refinement=refinement)
        assert path.states.shape == (3, batch.ops.shape[1] + 1, 1, 6, 5) and path.states.dtype == dtype
        assert path.work.shape == batch.ops.shape
        np.testing.assert_allclose(path.states[:, 0], query.u0, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_array_equal(path.states[:, -1], run(batch, DICTIONARY, query, refinement=refinement))

    @pytest.mark.parametrize("name", PROBLEMS)
    def test_a_trace_runs_what_run_runs_for_every_problem(self, name: str) -> None:
        problem = PROBLEMS[name]
        shape = (12,) * len(problem.shape)
        query = problem.queries(4, "id", seed=1, shape=shape)
        rng = np.random.default_rng(2)
        for dictionary in problem.dictionaries.values():
            ops = rng.integers(EMPTY, len(dictionary), (4, 5))
            programs = ProgramBatch(dictionary.names, ops, rng.uniform(0, 0.02, (4, 5)) * query.time[:, None])
            for refinement in (1, 2):
                path = trace(programs, dictionary, query, refinement=refinement)
                np.testing.assert_array_equal(
                    path.states[:, -1], run(programs, dictionary, query, refinement=refinement)
                )
                half = 24 * query.u0[:1].nbytes * refinement ** len(shape)  # two samples at a time
                few = trace(programs, dictionary, query, refinement=refinement, steps=(0, 3, -1), memory=half)
                assert few.steps == (0, 3, 5)
                np.testing.assert_array_equal(few.states, path.states[:, [0, 3, 5]])
                np.testing.assert_array_equal(few.work, path.work)
            fine = trace(programs, dictionary, query, refinement=2, steps=(2, 5), fine=True)
            assert fine.states.shape[3:] == query.grid.refined(2).shape
            np.testing.assert_array_equal(restrict(fine.states, shape), path.states[:, [2, 5]])

    @pytest.mark.parametrize("step", [-4, 3])
    def test_a_trace_has_no_other_steps(self, step: int) -> None:
        with pytest.raises(InvalidInputError, match=f"there is no step {step}; 0 is the start, 2 or -1 the last"):
            trace(Program.parse("reaction 0.1, muscl 0.1"), DICTIONARY, query_of(1), steps=(0, step))

    def test_a_trace_has_the_state_after_every_step(self) -> None:
        query = query_of(2)
        long, short = Program.parse("muscl 0.1, reaction 0.2, diffusion 0.3"), Program.parse("reaction 0.4")
        path = trace(batch_of(long, short), DICTIONARY, query)
        u = query.u0[:1]
        for k, step in enumerate(long, start=1):
            one = query.setting.take(slice(0, 1))
            u = DICTIONARY[step.primitive].flow(u, np.array([step.duration]), one)
            np.testing.assert_array_equal(path.states[0, k], u[0])
        for k in (1, 2, 3):
            np.testing.assert_array_equal(path.states[1, k], run(short, DICTIONARY, query.take(slice(1, 2)))[0])
        assert (path.work[0] > 0).all()
        assert path.work[1, 0] > 0
        assert not path.work[1, 1:].any()

    def test_a_fused_pair_costs_one_transform(self) -> None:
        query = query_of(2)
        pair, cells = transform_work(query.setting), query.grid.cells
        for text, transforms in (("advection 0.1", 1), ("advection 0.1, diffusion 0.1, advection 0.2", 1)):
            work = measure(Program.parse(text), DICTIONARY, query).work
            np.testing.assert_array_equal(work, transforms * pair)
        work = measure(
            Program.parse("diffusion 0.1, reaction 0.2, advection 0.1, diffusion 0.1"), DICTIONARY, query
        ).work
        np.testing.assert_allclose(work, 2 * pair + cells)
        unfused = trace(Program.parse("advection 0.1, diffusion 0.1, advection 0.2"), DICTIONARY, query).work
        np.testing.assert_array_equal(unfused, np.stack([pair] * 3, axis=1))

    def test_work_is_the_sum_over_the_simplified_steps(self) -> None:
        query = query_of(3)
        program = Program.parse("muscl 0.2, reaction 0.1, muscl 0.1, diffusion 0.2, reaction 0.1")
        outcome = measure(program, DICTIONARY, query)
        np.testing.assert_array_equal(outcome.states, run(program, DICTIONARY, query))
        np.testing.assert_allclose(outcome.work, trace(program, DICTIONARY, query).work.sum(axis=1), rtol=1e-15)
        assert (measure(Program(()), DICTIONARY, query).work == 0).all()


class TestPopulation:
    """Several programs for every query; those of exact flows on small boxes run in cache from first step to last."""

    @properties
    @given(st.lists(programs_of(EXACT_FLOWS), min_size=6, max_size=6), st.sampled_from([(6, 5), (8,), (7, 4)]))
    def test_each_is_what_it_would_be_step_by_step(self, programs: list[Program], shape: tuple[int, ...]) -> None:
        query = on_shape(query_of(3), shape)
        batch = batch_of(*programs, names=EXACT_FLOWS.names)
        together = measure(batch, EXACT_FLOWS, query, members=2)
        tiled = query.take(np.tile(np.arange(3), 2))
        steps = trace(batch, EXACT_FLOWS, tiled)
        np.testing.assert_allclose(together.states, steps.states[:, -1], rtol=0, atol=1e-12)
        alone = [measure(batch.take(np.array([i])), EXACT_FLOWS, query.take(np.array([i % 3]))) for i in range(6)]
        np.testing.assert_array_equal(together.states, np.concatenate([one.states for one in alone]))
        np.testing.assert_array_equal(together.work, np.concatenate([one.work for one in alone]))

    @pytest.mark.parametrize("refinement", [1, 2])
    @pytest.mark.parametrize("dictionary", [EXACT_FLOWS, DICTIONARY], ids=["in cache", "side by side"])
    def test_distances_are_those_of_the_states(self, dictionary: Dictionary, refinement: int) -> None:
        query = query_of(3)
        truth = np.random.default_rng(1).random(query.u0.shape)
        programs = batch_of(
            *(Program.of(("diffusion", 0.1 * i), ("reaction", 0.2)) for i in range(6)), names=dictionary.names
        )
        squares, work = distances(programs, dictionary, query, truth, refinement=refinement, members=2)
        done = measure(programs, dictionary, query, refinement=refinement, members=2)
        expected = ((done.states.reshape(2, *truth.shape) - truth) ** 2).sum(axis=(2, 3, 4))
        np.testing.assert_allclose(squares, expected, rtol=1e-13)
        np.testing.assert_array_equal(work, done.work.reshape(2, 3))

    def test_a_lost_sample_is_named_with_its_program(self) -> None:
        query = query_of(2)
        query.u0[1] = -0.5
        good, bad = Program.of(("reaction", 0.1)), Program.of(("diffusion", 0.01), ("reaction", 50.0))
        with pytest.raises(NonFiniteStateError, match=r"sample 1: the state became NaN or infinite at step 2 of 2"):
            measure(batch_of(good, good, good, bad), EXACT_FLOWS, query, members=2)
        for memory in (1, 2**20):  # also in parts, and on a finer grid
            with pytest.raises(NonFiniteStateError, match=r"sample 1: .* at step 2 of 2"):
                measure(batch_of(good, bad), EXACT_FLOWS, query, refinement=2, memory=memory)
        with pytest.raises(InvalidInputError, match="3 programs for 2 queries: 2 each is needed"):
            measure(batch_of(good, good, bad), EXACT_FLOWS, query, members=2)


def on_shape(query: Query, shape: tuple[int, ...]) -> Query:
    """A query of the same coefficients on another box."""
    axes = len(shape)
    grid = Grid(shape, query.grid.lengths[:, :axes], ("periodic",) * axes)
    u0 = np.random.default_rng(2).uniform(0.1, 0.9, (query.batch, 1, *shape))
    return Query(u0, Setting(grid, query.setting.channels, query.setting.params), query.time)
