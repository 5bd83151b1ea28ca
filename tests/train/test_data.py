"""Data folders: the same however often a run was stopped, and as large as was asked for."""

import os

import numpy as np
import pytest
from engine.running import tiny_target
from train.writing import Canned, manifest_of, prompts_of

from outrider.errors import UsageError
from outrider.train import manifest as manifests
from outrider.train.data import Told, make_data, open_folder
from outrider.train.manifest import Fates, read_manifest
from outrider.train.shards import read_samples
from outrider.train.texts import Text
from outrider.train.work import Mix, Plan
from outrider.train.writer import Limits, Writer

VOCAB = 40


def answer(item):
    """Five tokens that tell the item."""
    return [item.index % 30, *item.prompt.tokens, item.seed % 30, 7]


class StoppedError(Exception):
    """Stands for whatever kills a run."""


def plan_of(prompts, *, once=False, mix="0:1,1:1") -> Plan:
    return Plan(prompts, Mix.parse(mix), seed=3, once=once)


def run(folder, *, answering=None, tokens=None, stop_after=None, given=None, mix="0:1,1:1", **settings):
    """Make data; with ``stop_after`` the run dies at that many answers."""
    made = given or prompts_of(7, 6)
    told = []

    def watch(one: Told) -> None:
        told.append(one)
        if len(told) == stop_after:
            raise StoppedError

    out = open_folder(folder, manifest_of(made, **settings))
    answering = answering or Canned(answer)
    make_data(plan_of(made, once=tokens is None, mix=mix), answering, out, tokens=tokens, watch=watch)
    return told


def contents(folder):
    """Names and bytes of all files, and the manifest without what differs from run to run."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".safetensors"}
    return files, read_manifest(folder).model_dump(exclude={"provenance"})


def test_each_prompt_is_answered_once(tmp_path):
    run(tmp_path)
    samples = read_samples(tmp_path)
    prompts = {tuple(samples.tokens(n)[: samples.response(n)].tolist()) for n in range(len(samples))}
    assert prompts == {prompt.tokens for part in prompts_of(7, 6).by_source for prompt in part}
    assert [shard.samples for shard in samples.manifest.shards] == [4, 4, 4, 1]
    assert samples.manifest.complete


def test_samples_hold_prompt_answer_source_and_temperature(tmp_path):
    run(tmp_path)
    samples = read_samples(tmp_path)
    items = list(plan_of(prompts_of(7, 6), once=True).items())
    for index, item in enumerate(items):
        assert samples.tokens(index).tolist() == [*item.prompt.tokens, *answer(item)]
        assert samples.response(index) == 2
        assert samples.sources_M[index] == item.prompt.source
        assert samples.temperatures_M[index] == item.temperature


def test_answers_in_another_order_are_the_same_files(tmp_path):
    run(tmp_path / "a")
    run(tmp_path / "b", answering=Canned(answer, backwards=5))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("stops", [(1,), (4,), (5,), (9, 2, 3)])
def test_a_run_that_was_stopped_makes_the_same_files(tmp_path, stops):
    run(tmp_path / "whole", tokens=150)
    for stop in stops:
        with pytest.raises(StoppedError):
            run(tmp_path / "parts", tokens=150, stop_after=stop)
    run(tmp_path / "parts", tokens=150)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_stopped_run_answers_no_prompt_of_a_whole_shard_again(tmp_path):
    with pytest.raises(StoppedError):
        run(tmp_path, stop_after=9)
    second = Canned(answer)
    run(tmp_path, answering=second)
    assert second.asked == list(range(8, 13))


def test_the_embedded_writer_makes_the_same_files_however_it_was_stopped(tmp_path):
    target = tiny_target(VOCAB)
    limits = Limits(max_len=16, max_tokens=8, stop_ids=frozenset({3, 7}))
    prompts = prompts_of(9, 8)

    def writer():
        return Writer(target, batch=3, limits=limits)

    run(tmp_path / "whole", answering=writer(), given=prompts)
    with pytest.raises(StoppedError):
        run(tmp_path / "parts", answering=writer(), given=prompts, stop_after=10)
    run(tmp_path / "parts", answering=writer(), given=prompts)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert len(read_samples(tmp_path / "whole")) == 17


def test_a_goal_in_tokens_is_reached_and_not_much_passed(tmp_path):
    run(tmp_path, tokens=101)
    manifest = read_manifest(tmp_path)
    assert 101 <= manifest.response_tokens < 101 + 5
    assert manifest.complete


def test_a_goal_that_is_reached_asks_for_nothing(tmp_path):
    run(tmp_path, tokens=50)
    before = contents(tmp_path)
    again = Canned(answer)
    run(tmp_path, tokens=50, answering=again)
    assert again.asked == []
    assert contents(tmp_path) == before


def test_a_higher_goal_goes_on_where_the_lower_one_ended(tmp_path):
    run(tmp_path, tokens=50)
    before, manifest = contents(tmp_path)[0], read_manifest(tmp_path)
    more = Canned(answer)
    run(tmp_path, tokens=100, answering=more)
    assert more.asked[0] == manifest.next
    after = contents(tmp_path)[0]
    assert {name: after[name] for name in before} == before
    assert read_manifest(tmp_path).response_tokens >= 100


def test_prompts_are_answered_again_with_other_draws_until_the_goal(tmp_path):
    run(tmp_path, tokens=300)
    samples = read_samples(tmp_path)
    texts = {tuple(samples.tokens(n).tolist()) for n in range(len(samples))}
    assert len(samples) > 4 * 13
    assert len(texts) == len(samples)


def test_greedy_answers_alone_end_before_the_goal(tmp_path):
    run(tmp_path, tokens=300, mix="0")
    assert len(read_samples(tmp_path)) == 13


def looping(item):
    return [1, 2] * 40 if item.index % 2 else answer(item)


def test_loops_are_cut_and_counted(tmp_path):
    run(tmp_path, answering=Canned(looping), max_repeats=6)
    samples = read_samples(tmp_path)
    lengths = samples.lengths_M - samples.responses_M
    assert set(lengths.tolist()) == {5, 19}  # a run starts every second token; the seventh would end with the 20th
    assert samples.manifest.fates == Fates(ended=7, looping=6)


def test_loops_stay_where_no_limit_is_set(tmp_path):
    run(tmp_path, answering=Canned(looping))
    assert read_manifest(tmp_path).fates == Fates(ended=13)


def some_empty(item):
    return [7] if item.index % 2 else answer(item)


def test_empty_answers_are_dropped_and_counted(tmp_path):
    run(tmp_path, answering=Canned(some_empty))
    manifest = read_manifest(tmp_path)
    assert (manifest.samples, manifest.fates) == (7, Fates(ended=7, empty=6))
    assert manifest.next == 13


def refused(item):
    return Text(item, np.zeros(0, dtype=np.int32), ended=False, refusal="no")


def test_no_answer_that_can_be_used_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="No answer could be used: 13 refused"):
        run(tmp_path, answering=Canned(refused))


def test_full_answers_are_told_from_ended_ones(tmp_path):
    def full(item):
        return Text(item, np.arange(8, dtype=np.int32), ended=False)

    run(tmp_path, answering=Canned(full))
    assert read_manifest(tmp_path).fates == Fates(full=13)


def test_the_watcher_is_told_of_tokens_and_shards(tmp_path):
    told = run(tmp_path)
    assert sum(one.tokens for one in told) == 13 * 5
    assert sum(one.items for one in told) == 13
    assert [one.shard.file for one in told if one.shard] == [f"shard-{n:05d}.safetensors" for n in range(4)]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"seed": 4}, "seed 0, now 4"),
        ({"prompts": "1" * 64}, "other prompts"),
        ({"max_repeats": 6}, "max_repeats 0, now 6"),
        ({"thinking": False}, "thinking None, now False"),
    ],
)
def test_a_folder_goes_on_only_under_the_same_settings(tmp_path, settings, reason):
    run(tmp_path)
    with pytest.raises(UsageError, match=f"holds data made with {reason}.*--out"):
        run(tmp_path, **settings)


def test_a_folder_goes_on_only_with_the_same_target(tmp_path):
    run(tmp_path)
    manifest = manifest_of(prompts_of(7, 6))
    other = manifest.target.model_copy(update={"files": {"model.safetensors": "e" * 64}})
    with pytest.raises(UsageError, match="another target: its files have changed"):
        open_folder(tmp_path, manifest.model_copy(update={"target": other}))


def test_a_full_disk_in_the_middle_can_be_gone_on_from(tmp_path, monkeypatch):
    run(tmp_path / "whole")
    with monkeypatch.context() as patch:
        fsync, count = os.fsync, iter(range(1000))

        def full(handle):
            if next(count) == 5:
                raise OSError(28, "No space left on device")
            fsync(handle)

        patch.setattr(manifests.os, "fsync", full)
        with pytest.raises(UsageError, match="is full"):
            run(tmp_path / "parts")
    assert read_manifest(tmp_path / "parts").samples == 8
    run(tmp_path / "parts")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
