"""Train the small hybrid on what its teacher wrote.

    python -m recipes.small_hybrid.train TEACHER DATA --out FOLDER --steps 3000

DATA is a folder of ``outrider train data``, written by TEACHER. The folder that comes out is a Qwen3.5 checkpoint with
an MTP head, in float32; README.md beside this file has the whole recipe.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch
from benchmarks.target_folder import write_words
from safetensors.torch import save_file
from torch import Tensor, nn

import outrider
from outrider.models.decoder import Decoder
from outrider.train.batches import Reader
from outrider.train.documents import split
from outrider.train.shards import read_samples
from recipes.small_hybrid.lesson import SECOND, Lesson, Score
from recipes.small_hybrid.network import HybridConfig, HybridNetwork

WARM_UP = 0.03  # of all steps
CLIP = 1.0
NAMES = ("trunk", "mtp 1", "mtp 2")


def main() -> None:
    """Run the command."""
    asked = _arguments()
    torch.manual_seed(asked.seed)
    torch.set_float32_matmul_precision("high")
    runner = outrider.load(asked.teacher, device=asked.device)
    teacher, device = runner.target, runner.target.device
    of = runner.checkpoint.config
    config = HybridConfig(
        vocab_size=teacher.shape.vocab_size, bos_token_id=of["bos_token_id"], eos_token_id=of["eos_token_id"]
    )
    network = HybridNetwork(config, torch.bfloat16 if device.type == "cuda" else torch.float32).to_device(device)
    begin(network, narrowed(teacher, config.hidden_size))
    Run(asked, network, teacher).go()
    write_words(asked.out, runner.tokenizer)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teacher")
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--minutes", type=float, default=math.inf, help="the rate falls by time where that is sooner")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--row-length", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--log-every", type=int, default=50)
    return parser.parse_args()


def narrowed(teacher: Decoder, width: int) -> Tensor:
    """Return the teacher's embedding table in fewer dimensions: those that hold most of it, at its own scale."""
    table_VH = teacher.embed(torch.arange(teacher.shape.vocab_size, device=teacher.device)).float()
    _, directions = torch.linalg.eigh(table_VH.T @ table_VH)
    narrow_VH: Tensor = table_VH @ directions[:, -width:]
    return narrow_VH


@torch.no_grad()
def begin(network: HybridNetwork, table_VH: Tensor) -> None:
    """Take an embedding table, and norms before it that make first logits about 1 in size, whatever its scale."""
    network.model.embed_tokens.weight.copy_(table_VH)
    for norm in (network.model.norm, network.mtp.norm):
        norm.weight.fill_(1 / float(table_VH.norm(dim=1).mean()) - 1)


class Run:
    """The steps, their log, and what comes out.

    Args:
        asked: the command line.
        network: learns.
        teacher: whose text and law are learnt.
    """

    def __init__(self, asked: argparse.Namespace, network: HybridNetwork, teacher: Decoder) -> None:
        self._asked, self._network, self._device = asked, network, teacher.device
        documents = split(read_samples(asked.data), share=0.01, row_length=asked.row_length, where=str(asked.data))
        self._train, self._held_out = (
            Reader(part, rows=asked.rows, row_length=asked.row_length, anchors=1, block_size=16, seed=asked.seed)
            for part in (documents.train, documents.held_out)
        )
        self._lesson = Lesson(
            network, teacher, rows=asked.rows, row_length=asked.row_length, mtp_rows=max(1, asked.rows // 2)
        )
        if self._device.type == "cuda":
            network.compile_layers()
        self._optimizers = _optimizers(network, asked.lr)
        self._begun = time.monotonic()

    def go(self) -> None:
        """Train to the end and write the folder."""
        self._asked.out.mkdir(parents=True, exist_ok=True)
        step, epoch, within, shown = 0, 0, 0, time.monotonic()
        while (done := self._done(step)) < 1:
            if within == self._train.steps(epoch):
                epoch, within = epoch + 1, 0
            scores = self._step(epoch, within, self._asked.lr * _share(done))
            step, within = step + 1, within + 1
            if step % self._asked.log_every == 0:
                self._tell("step", step, epoch, scores, (time.monotonic() - shown) / self._asked.log_every)
                shown = time.monotonic()
        with torch.no_grad():
            batch = self._held_out.read(0, 0, slice(0, self._asked.rows))
            self._tell("held out", step, epoch, self._lesson.score(batch.to(self._device)), 0.0)
        write(self._network, self._asked.out)

    def _done(self, step: int) -> float:
        minutes = (time.monotonic() - self._begun) / 60
        return max(step / float(self._asked.steps), minutes / float(self._asked.minutes))

    def _step(self, epoch: int, within: int, rate: float) -> tuple[Score, Score, Score]:
        batch = self._train.read(epoch, within, slice(0, self._asked.rows)).to(self._device)
        scores = self._lesson.score(batch)
        (scores[0].cost + scores[1].cost + SECOND * scores[2].cost).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._network.parameters(), CLIP)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return scores

    def _tell(self, kind: str, step: int, epoch: int, scores: tuple[Score, Score, Score], seconds: float) -> None:
        line = {"kind": kind, "step": step, "epoch": epoch, "seconds": round(seconds, 4)} | {
            name: {
                "cost": round(float(score.cost.detach()), 4),
                "surprise": round(float(score.surprise), 4),
                "right": round(float(score.right), 4),
            }
            for name, score in zip(NAMES, scores, strict=True)
        }
        text = json.dumps(line)
        print(text, flush=True)
        with (self._asked.out / "metrics.jsonl").open("a", encoding="utf-8") as log:
            log.write(text + "\n")


def _share(done: float) -> float:
    """Return the rate's share of its highest: up in a line, then down a cosine."""
    if done < WARM_UP:
        return (done + 1e-3) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))


def _optimizers(network: HybridNetwork, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices; AdamW for table, vectors and convolutions."""
    table = network.model.embed_tokens.weight
    parameters = list(network.parameters())
    matrices = [one for one in parameters if one.dim() == 2 and one is not table]  # noqa: PLR2004 -- rows and columns
    others = [one for one in parameters if one.dim() != 2]  # noqa: PLR2004
    groups = [{"params": [table], "weight_decay": 0.0}, {"params": others, "weight_decay": 0.0}]
    return [
        torch.optim.Muon([{"params": matrices, "weight_decay": 0.05}], rate, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(groups, rate, betas=(0.9, 0.95), fused=True),
    ]


def write(network: HybridNetwork, folder: Path) -> None:
    """Write the checkpoint: config.json and model.safetensors."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(network.config.published(), indent=1) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
