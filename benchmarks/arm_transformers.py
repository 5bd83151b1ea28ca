"""Worker: Transformers' own ``generate``, plain or with its prompt look-up decoding.

The model is built from our reading of the checkpoint: Transformers takes a minute for a GGUF file.
Forward passes are timed by a hook; each token beyond one a pass counts as an accepted draft token.
"""

import argparse
from itertools import pairwise
from time import perf_counter
from typing import Any

import torch
import transformers

from outrider.bench.arm import Generate, serve
from outrider.bench.protocol import Answer, Request
from outrider.checkpoint import open_checkpoint, resolve
from outrider.models.weights import read_tensor


def load(name: str, dtype: str, lookup: int) -> tuple[dict[str, str], Generate]:
    """Build the model; ``lookup`` is the number of tokens looked up, 0 for plain decoding."""
    model = _build(name, getattr(torch, dtype))
    passes: list[float] = []
    model.register_forward_hook(lambda *_: passes.append(perf_counter()))
    about = {"engine": "transformers", "version": transformers.__version__, "dtype": dtype}
    options = {"prompt_lookup_num_tokens": lookup} if lookup else {}

    def generate(request: Request) -> Answer:
        passes.clear()
        ids = torch.tensor([request.prompt_ids])
        start = perf_counter()
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=request.max_tokens,
            **options,
        )
        seconds = perf_counter() - start
        tokens = out[0, ids.shape[1] :].tolist()
        return _answer(tokens, seconds, [start, *passes])

    return {**about, "threads": str(torch.get_num_threads())}, generate


def _answer(tokens: list[int], seconds: float, times: list[float]) -> Answer:
    steps = [after - before for before, after in pairwise(times)]
    return Answer(
        tokens=tokens,
        seconds=seconds,
        prefill_seconds=steps[0],
        step_seconds=steps[1:],
        rounds=len(steps) - 1,
        accepted=len(tokens) - len(steps),
    )


def _build(name: str, dtype: torch.dtype) -> Any:
    checkpoint = open_checkpoint(resolve(name))
    config = transformers.AutoConfig.for_model(**checkpoint.config)
    weights = {key: read_tensor(checkpoint, key).to(dtype) for key in checkpoint.tensors}
    kind: Any = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    model = kind.from_pretrained(None, config=config, state_dict=weights, dtype=dtype)
    # Go on past an end token, so that all arms make the same number of tokens.
    model.generation_config.eos_token_id = None
    return model.eval()


def main() -> None:
    """Serve one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--lookup", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    serve(lambda: load(arguments.model, arguments.dtype, arguments.lookup))


if __name__ == "__main__":
    main()
