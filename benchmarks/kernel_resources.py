"""``python -m benchmarks.kernel_resources``: all Triton kernels at real shapes, built for Hopper, without a GPU.

Says in advance what each takes: shared memory, registers, bytes that spill to local memory, matrix instructions. Needs
Triton 3.6 (``pip install triton==3.6.0``); its package brings the assembler.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from outrider.kernels import add_norm, best_tree, delta_tree, head_inputs, launch, skinny, top_words, tree_attention

HOPPER = GPUTarget("cuda", 90, 32)
MOST_SHARED = 227 * 1024  # bytes that one program may have
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
OPTIONS = ("num_warps", "num_stages", "launch_pdl")
TYPES = {
    torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float32: "*fp32", torch.float8_e4m3fn: "*fp8e4nv",
    torch.int64: "*i64", torch.int32: "*i32", torch.uint8: "*u8", torch.bool: "*i1",
}  # fmt: skip


class Built(NamedTuple):
    """What one kernel takes.

    Attributes:
        name: of the kernel.
        shared: bytes of shared memory of a program.
        registers, spilled: of a thread; numbers, and bytes.
        wgmma, mma: matrix instructions in its text.
    """

    name: str
    shared: int
    registers: int
    spilled: int
    wgmma: int
    mma: int


class Builder:
    """Stands in for a kernel: launching it builds it for what it is given, once."""

    def __init__(self, kernel: Any, found: dict[str, Built]) -> None:
        self._kernel, self._found = kernel, found

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """Return what takes the launch's arguments."""
        return self._launch

    def _launch(self, *arguments: Any, **named: Any) -> None:
        options = {key: named.pop(key) for key in OPTIONS if key in named}
        given = dict(zip((parameter.name for parameter in self._kernel.params), arguments, strict=False)) | named
        types: dict[str, str] = {}
        constants: dict[tuple[int], Any] = {}
        hints: dict[tuple[int], Any] = {}
        for index, parameter in enumerate(self._kernel.params):
            value = given[parameter.name]
            if parameter.is_constexpr or (isinstance(value, int) and value == 1):
                types[parameter.name], constants[index,] = "constexpr", value
                continue
            types[parameter.name] = TYPES[value.dtype] if isinstance(value, Tensor) else _number(value)
            if isinstance(value, Tensor) or (isinstance(value, int) and value % 16 == 0):
                hints[index,] = [["tt.divisibility", 16]]
        key = f"{self._kernel.fn.__name__} {types} {constants} {options}"
        if key not in self._found:
            source = ASTSource(self._kernel, types, constants, hints)
            self._found[key] = _examine(self._kernel.fn.__name__, triton.compile(source, HOPPER, options))


def _number(value: float) -> str:
    return "i32" if isinstance(value, int) else "fp32"


def _examine(name: str, built: Any) -> Built:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        command = [str(TOOLS / "cuobjdump"), "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, spilled = (int(number) for number in re.findall(r"REG:(\d+) STACK:(\d+)", told)[0])
    text = built.asm["ptx"]
    return Built(name, built.metadata.shared, registers, spilled, text.count("wgmma.mma_async"), text.count("mma.sync"))


def stand_in(found: dict[str, Built]) -> None:
    """Have every launcher build instead of launch, as on a GPU with 132 multiprocessors."""
    for module in (add_norm, best_tree, head_inputs, skinny):
        _replace(module, "_kernel", Builder(module._kernel(), found))  # noqa: SLF001 -- in place of a GPU
    for module in (delta_tree, top_words, tree_attention):
        _replace(module, "_kernels", tuple(Builder(kernel, found) for kernel in module._kernels()))  # noqa: SLF001
    for module in (add_norm, best_tree, delta_tree, head_inputs, skinny, top_words, tree_attention):
        _replace(module, "early", {"EARLY": True, "launch_pdl": True})
    for module in (launch, skinny, tree_attention):
        _replace(module, "processors", 132)


def _replace(module: Any, name: str, value: Any) -> None:
    setattr(module, name, lambda *_: value)


def launch_all(nodes: int) -> None:
    """Launch every kernel as a round of Qwen3.6-27B with so many nodes does; nothing is computed."""
    for outputs, inputs in ((16480, 5120), (14336, 5120), (5120, 6144), (5120, 17408), (248320, 5120)):
        skinny.skinny(_like(nodes, inputs), _like(outputs, inputs))
    skinny.skinny(_like(nodes, 5120), _like(34816, 5120), gated=True)
    narrow, scales = _like(34816, 5120, dtype=torch.float8_e4m3fn), _exact(272, 40)
    skinny.skinny(_like(nodes, 5120), narrow, scale=scales, gated=True)
    skinny.skinny(_like(nodes, 5120), narrow, scale=scales)
    for hidden in (None, _like(1, nodes, 5120)):
        add_norm.add_norm(_like(1, nodes, 5120), hidden, _exact(5120), 1e-6)
    _launch_attention(nodes)
    _launch_delta(nodes)
    for count in (1, 16):
        top_words.top_words(_exact(nodes, 248320), count)
    if nodes > 1:
        best_tree.best_tree(_whole(1, 15, 16), _exact(1, 15, 16), _whole(1), nodes)


def _launch_attention(nodes: int) -> None:
    """The target's layers and the drafter's, the latter with a window."""
    sight = tree_attention.Sight(_like(1, nodes, nodes, dtype=torch.bool), *(_whole(1, nodes),) * 2, _whole(1))
    for heads, groups, size, turned, gated in ((24, 4, 256, 64, True), (32, 8, 128, 128, False)):
        cache = (_like(1, groups, 4096, size),) * 2
        width = (heads * (1 + gated) + 2 * groups) * size
        head_inputs.head_inputs(
            _like(1, nodes, width), head_inputs.HeadShape(heads, groups, size), (_exact(size),) * 2,
            (_like(1, nodes, 1, turned),) * 2, _whole(1, nodes), cache, 1e-6,
        )  # fmt: skip
        gate = _like(1, nodes, width)[..., (heads + 2 * groups) * size :] if gated else None
        query = _like(1, nodes, heads, size)
        tree_attention.attention(query, *cache, sight, window=None if gated else 2048, gate_BNX=gate)


def _launch_delta(nodes: int) -> None:
    shape = delta_tree.DeltaShape(16, 48, 128, 128, 4)
    weights = delta_tree.DeltaWeights(_exact(10240, 4), _exact(48), _exact(48), _exact(128))
    tape = delta_tree.LayersTape.new(shape, 48, 1, nodes, _like(1))
    committed = delta_tree.Committed(_exact(1, 48, 128, 128), _like(1, 3, 10240))
    descent = delta_tree.Descent(_like(1, nodes, nodes, dtype=torch.bool), _whole(1, nodes, 4))
    delta_tree.delta_tree(_like(1, nodes, 16480), shape, weights, committed, descent, tape, 0, 1e-6)
    states, stored = _exact(48, 1, 48, 128, 128), _like(48, 1, 3, 10240)
    delta_tree.commit_layers(shape, states, stored, tape, _whole(1, min(nodes, 16)), _whole(1))


def _like(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def _exact(*shape: int) -> Tensor:
    return _like(*shape, dtype=torch.float32)


def _whole(*shape: int) -> Tensor:
    return _like(*shape, dtype=torch.int64)


def main() -> None:
    """Build all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="1,16,64")
    found: dict[str, Built] = {}
    stand_in(found)
    for nodes in map(int, parser.parse_args().nodes.split(",")):
        begun = len(found)
        launch_all(nodes)
        print(f"\n{nodes} nodes:\n\n| kernel | shared KiB | registers | spilled bytes | wgmma | mma |")
        print("| --- |" + " ---: |" * 5)
        for one in list(found.values())[begun:]:
            full = " (does not fit)" if one.shared > MOST_SHARED else ""
            shared = f"{one.shared / 1024:.0f}{full}"
            print(f"| {one.name} | {shared} | {one.registers} | {one.spilled} | {one.wgmma} | {one.mma} |")


if __name__ == "__main__":
    main()
