"""Chains of a batch: what each row's guesses are, how often the device is asked, what is drawn and what is not."""

from collections import Counter

import pytest
import torch
from dflash.pair import Pair
from dflash.rounds import MAX_LEN, prompts_of
from engine.running import engine_of, finish, tiny_network, tiny_target
from fakes import Free

from outrider.drafters import dflash
from outrider.drafters.budget import how_many_pay, mean_reach
from outrider.drafters.chains import Chain, Chains
from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.interfaces import Slot
from outrider.engine.params import SamplingParams
from outrider.engine.rules import Rules, draw
from outrider.engine.tree import Proposal
from outrider.engine.uniforms import DRAFT, Uniforms
from outrider.errors import UsageError
from outrider.models.dflash.config import Confidence, Convolution, Markov, Selector
from outrider.models.dflash.network import DFlash, Draft

VOCAB, MOST = 37, 8
TARGET = tiny_target(VOCAB, num_hidden_layers=2)
GREEDY = SamplingParams()
HOT = SamplingParams(temperature=1.3, top_p=0.9, seed=3)
OTHER = SamplingParams(temperature=0.7, top_k=9, seed=4)
MARKOV = {"kind": "dspark", "markov": Markov(4, "rnn"), "anchor_predicts": True, "block_size": MOST}
PLAIN = {"block_size": MOST + 1}
KINDS = {
    "dflash": PLAIN,
    "dflash of few words": PLAIN | {"own_head": True, "draft_vocab_size": 20},
    "dflash2": PLAIN | {"kind": "dflash2", "convolution": Convolution(2, 4), "selector": Selector(4, 3)},
    "dspark": MARKOV,
    "dspark of few words": MARKOV | {"own_head": True, "draft_vocab_size": 20},
    "dspark with confidence": MARKOV | {"confidence": Confidence(with_markov=True)},
    "confidence alone": PLAIN | {"kind": "dspark", "confidence": Confidence(with_markov=False)},
}
ROWS = {
    "best": [GREEDY, GREEDY],
    "drawn": [HOT, OTHER],
    "mixed, one not there": [HOT, GREEDY, None, OTHER, GREEDY],
}


def network_of(kind: str) -> DFlash:
    options = KINDS[kind]
    network = tiny_network(TARGET, **options)
    if "draft_vocab_size" in options:
        generator = torch.Generator().manual_seed(2)
        network.words = torch.randperm(VOCAB, generator=generator)[: options["draft_vocab_size"]]
    return network


def slots_of(rows: list[SamplingParams | None]) -> list[Slot | None]:
    cpu = torch.device("cpu")
    return [
        params and Slot(slot=row, anchor=5 + row, max_depth=MOST, position=9 + row, rules=Rules(params, VOCAB, cpu))
        for row, params in enumerate(rows)
    ]


def draft_of(network: DFlash, rows: int) -> Draft:
    generator = torch.Generator().manual_seed(6)
    words = VOCAB if network.words is None else len(network.words)
    hidden = torch.randn(rows, MOST, TARGET.config.hidden_size, generator=generator)
    return Draft(hidden, 2 * torch.randn(rows, MOST, words, generator=generator))


def chains_of(network: DFlash, rows: list[SamplingParams | None], count: int = MOST) -> tuple[Chains, list[Chain]]:
    found = Chains(network, draft_of(network, len(rows)), slots_of(rows), depth=MOST, sampled=True)
    return found, found.take(count)


def slot_by_slot(network: DFlash, draft: Draft, row: int, slot: Slot) -> tuple[list[int], list[torch.Tensor]]:
    """One row's tokens and the laws they were drawn from, each slot after the token before it."""
    correction, rules = network.correction, slot.rules
    state = None if correction is None else correction.start(1)
    previous, tokens, laws = slot.anchor, [], []
    for index in range(MOST):
        scores, own = draft.logits_BKV[row, index], torch.arange(draft.logits_BKV.shape[-1])
        if correction is not None:
            if correction.candidates is not None:
                scores, own = scores.topk(correction.candidates)
            asked = None if correction.candidates is None else own[None]
            hidden = draft.hidden_BKH[row : row + 1, index]
            added, state = correction.step(hidden, torch.tensor([[previous]]), state, asked)
            scores = scores + added[0, 0]
        words = own if network.words is None else network.words[own]
        place = int(scores.argmax())
        if not rules.params.greedy:
            law = rules.probabilities(scores[None])
            place = int(draw(law, torch.from_numpy(rules.uniforms.at(DRAFT, slot.position + index, 1)))[0])
            laws.append(torch.zeros(VOCAB, dtype=torch.float64).scatter_(0, words, law[0]))
        previous = int(words[place])
        tokens.append(previous)
    return tokens, laws


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_has_its_own_chain_whoever_is_beside_it(kind, rows):
    network, slots = network_of(kind), slots_of(rows)
    _, chains = chains_of(network, rows)
    for row, (slot, chain) in enumerate(zip(slots, chains, strict=True)):
        if slot is None:
            assert chain == Chain()
            continue
        tokens, laws = slot_by_slot(network, draft_of(network, len(rows)), row, slot)
        assert chain.tokens == tokens
        assert (chain.laws_KV is None) == slot.rules.params.greedy
        if chain.laws_KV is not None:
            torch.testing.assert_close(chain.laws_KV, torch.stack(laws), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_off_changes_nothing_before_it(kind):
    network = network_of(kind)
    _, whole = chains_of(network, [HOT, GREEDY, OTHER])
    for count in (1, 3, MOST):
        _, cut = chains_of(network, [HOT, GREEDY, OTHER], count)
        for chain, first in zip(whole, cut, strict=True):
            assert first.tokens[:count] == chain.tokens[:count]
            if chain.laws_KV is not None:
                assert len(first.tokens) == len(first.laws_KV) == count
                assert torch.equal(first.laws_KV, chain.laws_KV[:count])


@pytest.mark.parametrize("kind", KINDS)
def test_chances_are_known_before_anything_is_drawn_and_depend_on_no_draw(kind):
    network, chances, tokens = network_of(kind), [], set()
    for seed in range(6):
        params = SamplingParams(temperature=2.0, seed=seed)
        found = Chains(network, draft_of(network, 1), slots_of([params]), depth=MOST, sampled=True)
        chances.append([list(row) for row in found.chances])
        tokens.add(tuple(found.take(MOST)[0].tokens))
        assert found.chances == chances[-1]
    assert len(tokens) > 1
    assert all(each == chances[0] for each in chances)
    assert len(chances[0][0]) == MOST


def test_a_head_that_foresees_acceptance_is_believed_where_the_best_words_are_taken():
    for kind in ("dspark with confidence", "confidence alone"):
        network = network_of(kind)
        found, chains = chains_of(network, [GREEDY, GREEDY])
        for row, chain in enumerate(chains):
            before = torch.tensor([[5 + row, *chain.tokens[:-1]]])
            foreseen = network.confidence(draft_of(network, 2).hidden_BKH[row : row + 1], before)
            assert found.chances[row] == pytest.approx(foreseen[0].tolist(), rel=1e-5)


@pytest.fixture
def questions(monkeypatch) -> Counter[str]:
    """How often the device was asked, by the way of asking; each would stall a GPU."""
    asked: Counter[str] = Counter()

    def counted(name: str):
        true = getattr(torch.Tensor, name)
        return lambda tensor, *args, **options: asked.update([name]) or true(tensor, *args, **options)

    for name in ("tolist", "item", "__bool__", "__int__", "__float__", "numpy"):
        monkeypatch.setattr(torch.Tensor, name, counted(name))
    return asked


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_device_is_asked_twice_for_each_way_of_choosing(kind, rows, questions, monkeypatch):
    plain = [params and (GREEDY if params.greedy else SamplingParams(temperature=1.0, seed=1)) for params in rows]
    network, draft, slots = network_of(kind), draft_of(network_of(kind), len(rows)), slots_of(plain)
    moved: Counter[int] = Counter()
    at = Uniforms.at
    monkeypatch.setattr(
        Uniforms, "at", lambda self, purpose, place, count: moved.update([place]) or at(self, purpose, place, count)
    )
    questions.clear()
    Chains(network, draft, slots, depth=MOST, sampled=True).take(MOST)
    ways = len({params.greedy for params in plain if params})
    assert sum(questions.values()) <= 2 * ways, questions
    assert set(moved.values()) <= {1}, "one row's random numbers are fetched at once"


class Priced(Costs):
    """A machine on which up to ``few`` drafts cost nothing and more cost dearly."""

    def __init__(self, few: int) -> None:
        super().__init__(learn=False)
        self._few = few

    def of(self, width: int, rows: int = 1) -> float:
        return 1.0 if width <= 1 + self._few else 100.0


@pytest.mark.parametrize("few", [1, 3])
def test_no_more_is_drawn_than_is_proposed_but_for_one_guess_that_teaches(pair: Pair, few, monkeypatch):
    drawn: list[int] = []
    true = Rules.probabilities
    monkeypatch.setattr(Rules, "probabilities", lambda rules, logits: drawn.append(len(logits)) or true(rules, logits))
    drafter = DFlashDrafter.build(Setting(1, MAX_LEN, pair.network))
    propose, proposed = drafter.propose, []

    def spy(slots, costs):
        before = len(drawn)
        proposals = propose(slots, costs)
        proposed.append((len(proposals[0].tokens), sum(drawn[before:])))
        return proposals

    drafter.propose = spy
    params = SamplingParams(temperature=1.0, seed=2, max_tokens=20)
    finish(engine_of(pair.target, drafter, max_len=MAX_LEN, costs=Priced(few)), [(prompts_of(1, 9)[0], params)])
    assert {tokens for tokens, _ in proposed[:5]} == {few}
    assert all(laws <= tokens + 1 for tokens, laws in proposed)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rows_of_a_batch_are_cut_at_one_count_by_what_they_bring_together(pair: Pair, temperature, monkeypatch):
    class Cheap(Costs):
        def of(self, width: int, rows: int = 1) -> float:
            return 1 + 0.06 * (width - 1)

    asked: list[list[float]] = []
    monkeypatch.setattr(
        dflash, "how_many_pay", lambda reach, *rest, **more: asked.append(reach) or how_many_pay(reach, *rest, **more)
    )
    drafter = DFlashDrafter.build(Setting(4, MAX_LEN, pair.network))
    propose, widths = drafter.propose, set()

    def spy(slots, costs) -> list[Proposal]:
        proposals = propose(slots, costs)
        running = [(proposal, slot) for proposal, slot in zip(proposals, slots, strict=True) if slot]
        widest = max(len(proposal.tokens) for proposal, _ in running)
        if widest:
            assert all(len(proposal.tokens) == min(widest, slot.max_depth) for proposal, slot in running)
            assert asked[-1][:widest] == pytest.approx(mean_reach([proposal.reach for proposal, _ in running]))
            widths.add(widest)
        return proposals

    drafter.propose = spy
    engine = engine_of(pair.target, drafter, slots=4, max_len=MAX_LEN, costs=Cheap(learn=False))
    requests = [
        (prompt, SamplingParams(temperature=temperature, seed=1, max_tokens=40)) for prompt in prompts_of(8, 5, 9, 20)
    ]
    finish(engine, requests)
    assert len(widths) > 2


def test_greedy_and_drawn_texts_share_a_batch(pair: Pair):
    drafter = DFlashDrafter.build(Setting(2, MAX_LEN, pair.network, DraftOptions(tokens=3)))
    engine = engine_of(pair.target, drafter, slots=2, max_len=MAX_LEN, costs=Free())
    greedy, drawn = SamplingParams(max_tokens=12), SamplingParams(temperature=1.0, seed=1, max_tokens=12)
    prompts = prompts_of(2, 6, 9)
    together = finish(engine, [(prompts[0], greedy), (prompts[1], drawn)])
    for sequence, prompt, params in zip(together, prompts, (greedy, drawn), strict=True):
        alone = DFlashDrafter.build(Setting(1, MAX_LEN, pair.network, DraftOptions(tokens=3)))
        [other] = finish(engine_of(pair.target, alone, max_len=MAX_LEN, costs=Free()), [(prompt, params)])
        assert sequence.output == other.output


@pytest.mark.parametrize("params", [SamplingParams(temperature=0.8, seed=1), HOT, OTHER])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_that_are_no_numbers_cannot_be_drawn_from_and_say_so(kind, params):
    network = network_of(kind)
    draft = draft_of(network, 1)
    draft.logits_BKV.fill_(float("nan"))
    with pytest.raises(UsageError, match="no finite numbers, and nothing can be drawn"):
        Chains(network, draft, slots_of([params]), depth=MOST, sampled=True)
    best = Chains(network, draft, slots_of([GREEDY]), depth=MOST, sampled=True).take(MOST)
    assert all(0 <= token < VOCAB for token in best[0].tokens)  # a wrong guess, which verification drops
