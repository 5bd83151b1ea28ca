"""The faults that the doctor tries, each at the strengths that tell something. Free of torch."""

from collections.abc import Iterator

from outrider.doctor.ablation.fault import Damage, Fault
from outrider.doctor.ablation.misread import misreadings
from outrider.models.dflash.config import DFlashConfig

HEALTHY = Fault(name="healthy", strength="", cause="other", how="the pair as it is")
KEPT, LOST, NEWEST = (16, 48), (32, 96), (1, 4)  # context positions


def usual_faults(config: DFlashConfig, blocks: int) -> tuple[Fault, ...]:
    """Return all faults that can be put into a pair.

    Args:
        config: the drafter's.
        blocks: of the target.
    """
    parts = (_features(config), _context(), _positions(), _shared(), _formats(), _weights(config), _rounds(config))
    return (*misreadings(config, blocks), *(fault for part in parts for fault in part))


def _features(config: DFlashConfig) -> Iterator[Fault]:
    for tap in range(len(config.taps)):
        how = "one tap gives zeros"
        damage = Damage(dead_tap=tap)
        yield Fault(name="dead tap", strength=f"number {tap}", cause="wrong_layer_ids", how=how, damage=damage)
    for noise in (0.3, 1.0):
        how = "features carry noise, as those of another target would"
        damage = Damage(feature_noise=noise)
        yield Fault(name="features differ", strength=f"{noise:g}", cause="target_mismatch", how=how, damage=damage)


def _context() -> Iterator[Fault]:
    def lost(strength: str, damage: Damage) -> Fault:
        how = "context keys are not there"
        return Fault(name="context lost", strength=strength, cause="context_kv_dropped", how=how, damage=damage)

    yield lost("all", Damage(kept_newest=0))
    for count in KEPT:
        yield lost(f"beyond {count}", Damage(kept_newest=count))
    for count in NEWEST:
        yield lost(f"newest {count}", Damage(lost_newest=count))
    for count in LOST:
        how = "context keys of the first positions are not restored"
        damage = Damage(lost_before=count)
        yield Fault(name="prefix lost", strength=f"{count}", cause="prefix_cache", how=how, damage=damage)


def _positions() -> Iterator[Fault]:
    for name, strength, damage, how in (
        ("context shifted", "one late", Damage(feature_shift=1), "a place holds the features of the token before"),
        ("context shifted", "one early", Damage(feature_shift=-1), "a place holds the features of the token after"),
        ("block shifted", "+1", Damage(block_shift=1), "positions of the block are too large"),
        ("block shifted", "+4", Damage(block_shift=4), "positions of the block are too large"),
        ("partial rotary", "1/2", Damage(rotary_share=0.5), "part of each head is rotated"),
        ("partial rotary", "1/4", Damage(rotary_share=0.25), "part of each head is rotated"),
    ):
        yield Fault(name=name, strength=strength, cause="position_or_rope", how=how, damage=damage)


def _shared() -> Iterator[Fault]:
    for name, strength, damage, how in (
        ("head", "random", Damage(head="random"), "another head than the target's"),
        ("head", "one row off", Damage(head="rolled"), "the target's head, its rows moved by one"),
        ("embedding", "random", Damage(embedding="random"), "another embedding than the target's"),
    ):
        yield Fault(name=name, strength=strength, cause="lm_head_or_embedding_not_shared", how=how, damage=damage)


def _formats() -> Iterator[Fault]:
    for name, damages in (
        ("weights rounded", {"fp8": Damage(weight_format="fp8"), "int4": Damage(weight_format="int4")}),
        ("features rounded", {"bf16": Damage(feature_format="bf16"), "int4": Damage(feature_format="int4")}),
        ("context keys rounded", {"fp8": Damage(cache_format="fp8"), "int4": Damage(cache_format="int4")}),
    ):
        for strength, damage in damages.items():
            how = "rounded there and back; whole numbers in groups of 32 with one scale"
            yield Fault(name=name, strength=strength, cause="dtype_or_quantisation", how=how, damage=damage)


def _weights(config: DFlashConfig) -> Iterator[Fault]:
    for noise in (0.1, 0.2, 0.4, 1.0):
        how = "each matrix is partly noise of its own size; 1 is untrained"
        damage = Damage(weight_noise=noise)
        yield Fault(
            name="early checkpoint", strength=f"{noise:g}", cause="undertrained_drafter", how=how, damage=damage
        )
    for layer in dict.fromkeys((0, config.num_layers - 1)):
        how, damage = "a layer's output is zero", Damage(dead_layer=layer)
        yield Fault(
            name="layer missing", strength=f"number {layer}", cause="draft_weights_missing", how=how, damage=damage
        )
    how, damage = "context features go without their norm", Damage(norm_missing=True)
    yield Fault(name="hidden norm missing", strength="", cause="draft_weights_missing", how=how, damage=damage)


def _rounds(config: DFlashConfig) -> Iterator[Fault]:
    for temperature in (0.7, 1.0):
        how = "each word of the target is drawn from its law; a word that is not its best ends a round"
        damage = Damage(temperature=temperature)
        yield Fault(name="temperature", strength=f"{temperature:g}", cause="sampling", how=how, damage=damage)
    for drafted in dict.fromkeys((1, max(1, config.max_tokens // 2))):
        how, damage = "fewer tokens are drafted than a block gives", Damage(drafted=drafted)
        yield Fault(
            name="tokens drafted", strength=f"{drafted}", cause="num_speculative_tokens", how=how, damage=damage
        )
