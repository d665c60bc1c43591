"""The sides of `bench.language`: the same decoders in Regard, Hugging Face transformers and CTranslate2."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[..., Any]
RECIPE = Path(__file__).parent.parent / "configs" / "tiny-shakespeare.yaml"
PROMPT, NEW, VOCABULARY = 32, 32, 50_257


def prompt(seed: int) -> list[int]:
    import random

    draw = random.Random(seed)
    return [draw.randrange(100, 50_000) for _ in range(PROMPT)]


def shakespeare(folder: Path) -> Any:
    """The recipe's task, its data prepared."""
    from regard.data.prepare import Silent
    from regard.tasks.language import LanguageModelling
    from regard.training.start import settle

    config, _ = settle(None, [str(folder / "input.txt")], None, RECIPE, {"train.device": "cpu"})
    return config, LanguageModelling.prepare(config, folder / "cache", Silent())


def regard_shakespeare(folder: Path) -> Work:
    """The recipe, by the package's own trainer."""
    import torch

    from regard.training.distributed import join
    from regard.training.folder import RunFolder
    from regard.training.loop import Trainer
    from regard.training.memory import keep_freed_memory
    from regard.training.optimizer import learning_rate

    keep_freed_memory()
    config, task = shakespeare(folder)
    torch.manual_seed(config.train.seed)
    ranks = join("cpu")
    model = task.build(config, task.vocabulary, task.facts).train()
    trainer = Trainer(model, task, config.train, RunFolder(folder / "run"), ranks)

    def train(steps: int, validate: bool) -> dict[str, float]:
        began, busy = time.perf_counter(), time.process_time()
        for _ in range(steps):
            trainer.step(learning_rate(trainer.progress.step + 1, config.train))
        seconds, cpu = time.perf_counter() - began, time.process_time() - busy
        loss = math.inf
        if validate:
            with trainer.averaged():
                loss = task.validate(model.eval(), ranks).loss
            model.train()
        return {"step": trainer.progress.step, "seconds": seconds, "cpu": cpu, "loss": loss}

    return train


def transformers_shakespeare(folder: Path) -> Work:
    """The same model and blocks in a plain loop, with nanoGPT's settings for them."""
    import numpy as np
    import torch
    import torch.nn.functional as F
    from transformers import GPT2Config, GPT2LMHeadModel

    config, task = shakespeare(folder)
    torch.manual_seed(config.train.seed)
    shape, rows = config.model, config.train.batch_tokens // config.options.block
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=task.vocabulary, n_positions=shape.max_length, n_embd=shape.width, n_layer=shape.layers,
            n_head=shape.heads, activation_function="gelu", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )
    ).train()  # fmt: skip
    decays = [weight for weight in model.parameters() if weight.ndim > 1]
    others = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
    done, total, warm = 0, 2000, 100

    def rate(step: int) -> float:
        share = min(1.0, max(0.0, (step - warm) / (total - warm)))
        return min(1.0, step / warm) * (1e-4 + 9e-4 * (0.5 + 0.5 * math.cos(math.pi * share)))

    def train(steps: int, validate: bool) -> dict[str, float]:
        nonlocal done
        began, busy = time.perf_counter(), time.process_time()
        for _ in range(steps):
            done += 1
            ids = task.batch(range(rows), done).ids
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
            F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = rate(done)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        seconds, cpu = time.perf_counter() - began, time.process_time() - busy
        return {"step": done, "seconds": seconds, "cpu": cpu, "loss": held_out_loss() if validate else math.inf}

    @torch.no_grad()
    def held_out_loss() -> float:
        model.eval()
        stream, block, losses = task.data.valid, config.options.block, []
        for begins in np.array_split(np.arange(0, len(stream.ids) - block, block), 60):
            ids = torch.from_numpy(stream.blocks(begins, block + 1))
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
            losses.append(F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none"))
        model.train()
        return float(torch.cat(losses).mean())

    return train


def regard_gpt2(folder: Path, weights: str) -> Work:
    from regard.config import SearchConfig
    from regard.decoding import Limits, search
    from regard.hub.folder import read_folder
    from regard.hub.gpt2 import GPT2
    from regard.inference import pack
    from regard.models import build, parse_model
    from regard.nn.weights import Unfilled, load_weights
    from regard.training.memory import keep_freed_memory

    read = read_folder(folder / "gpt2")
    config = parse_model(GPT2.settings(read.config))
    with Unfilled():
        model: Any = build(config, VOCABULARY)
    load_weights(model, GPT2.to_ours(read.weights, config.model_dump())[0], folder, share=True)
    model = pack(model.eval(), weights, keep=False)  # type: ignore[arg-type]
    keep_freed_memory()
    del read

    def generate(seed: int) -> list[list[int]]:
        import torch

        ids = prompt(seed)
        options = SearchConfig(method="greedy", min_length=NEW)
        limits = Limits(ids[-1], VOCABULARY - 1, [NEW])
        return [search(model, torch.tensor([ids[:-1]]), options, limits)[0][0].ids]

    return generate


def transformers_gpt2(folder: Path) -> Work:
    import torch
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder / "gpt2").eval()

    def generate(seed: int) -> list[list[int]]:
        ids = torch.tensor([prompt(seed)])
        with torch.inference_mode():
            found = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=NEW, max_new_tokens=NEW,
                pad_token_id=0,
            )  # fmt: skip
        new: list[list[int]] = found[:, PROMPT:].tolist()
        return new

    return generate


def ctranslate2_gpt2(folder: Path, weights: str) -> Work:
    import ctranslate2

    threads = int(os.environ["OMP_NUM_THREADS"])
    generator = ctranslate2.Generator(
        str(folder / f"gpt2-ctranslate2-{weights}"), compute_type=weights, intra_threads=threads
    )

    def generate(seed: int) -> list[list[int]]:
        found = generator.generate_batch(
            [[str(token) for token in prompt(seed)]], max_length=NEW, min_length=NEW, sampling_topk=1,
            include_prompt_in_result=False,
        )  # fmt: skip
        return [[int(token) for token in found[0].sequences[0]]]

    return generate


def ctranslate2_folder(peer: Any, path: Path, quantization: str | None) -> None:
    """A GPT-2 written for CTranslate2, with the numbers of its tokens for a vocabulary."""
    import copy

    from ctranslate2.converters.transformers import GPT2Loader

    spec = GPT2Loader().get_model_spec(copy.deepcopy(peer))
    spec.register_vocabulary([str(number) for number in range(VOCABULARY)])
    last = str(VOCABULARY - 1)
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = last
    spec.validate()
    spec.optimize(quantization=quantization)
    path.mkdir(parents=True, exist_ok=True)
    spec.save(str(path))


DECODERS: dict[str, dict[str, Callable[[Path], Work]]] = {
    "shakespeare": {"regard": regard_shakespeare, "transformers": transformers_shakespeare},
    "gpt2": {
        "regard": lambda folder: regard_gpt2(folder, "float32"),
        "transformers": transformers_gpt2,
        "ctranslate2": lambda folder: ctranslate2_gpt2(folder, "float32"),
        "regard int8": lambda folder: regard_gpt2(folder, "int8"),
        "ctranslate2 int8": lambda folder: ctranslate2_gpt2(folder, "int8"),
    },
}
