"""How good translations are: BLEU, chrF and TER by sacreBLEU, perplexity and accuracy, alignment error rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from regard.config import SearchConfig
from regard.data.batching import plan
from regard.data.pairs import Pair
from regard.data.tokenizers import UNSPACED
from regard.errors import UserError, nearest
from regard.nn.loss import CHUNK
from regard.tasks.alignment import alignment_errors
from regard.tasks.translator import Translation, Translator


def bleu(outputs: Sequence[str], references: Sequence[str], tokenize: str = "auto") -> float:
    """Corpus BLEU, cased (sacreBLEU's default)."""
    metric = text_metrics(Variant(tokenize), references)["bleu"]
    return float(metric.corpus_score(list(outputs), [list(references)]).score)


def tokenize_of(references: Sequence[str]) -> str:
    """How sacreBLEU should part these texts into words: 13a at spaces and punctuation; zh around every Chinese
    character; char everywhere, for other scripts that put no space between words."""
    letters = "".join(references)
    unspaced = UNSPACED.findall(letters)
    if len(unspaced) * 3 < sum(map(str.isalpha, letters)) or not unspaced:
        return "13a"
    return "zh" if all("\u3400" <= letter <= "\u9fff" or letter > "\uffff" for letter in unspaced) else "char"


LENGTHS = (10, 20, 30)
"""Words of the source that part short sentences from long ones."""


@dataclass(frozen=True)
class Variant:
    """How text is compared: sacreBLEU's tokenizer for BLEU (auto: see `tokenize_of`), and whether case counts."""

    tokenize: str = "auto"
    lowercase: bool = False


@dataclass(frozen=True)
class Scores:
    """The scores of a test set; `signatures` say exactly how each was computed.

    `aer` is the alignment error rate at each cross-attention, where the pairs carry a gold alignment. `by_length` has
    the pairs whose source has so many words, and their BLEU (as in Bahdanau 2015, figure 2).
    """

    sentences: int
    bleu: float
    chrf: float
    ter: float
    perplexity: float
    token_accuracy: float
    exact: float  # share of outputs equal to their reference
    signatures: dict[str, str]
    aer: dict[str, float]
    by_length: dict[str, LengthScore]


@dataclass(frozen=True)
class LengthScore:
    pairs: int
    bleu: float


def text_metrics(variant: Variant, references: Sequence[str]) -> dict[str, Any]:
    """sacreBLEU's metrics by name, set up as asked for."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    if variant.tokenize == "auto":
        variant = replace(variant, tokenize=tokenize_of(references))
    known = BLEU.TOKENIZERS
    if variant.tokenize not in known:
        raise UserError(f"tokenize = {variant.tokenize!r}: unknown to sacreBLEU{nearest(variant.tokenize, known)}")
    try:
        score = BLEU(tokenize=variant.tokenize, lowercase=variant.lowercase, force=True)  # tokenised text is fine
    except (RuntimeError, ImportError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"tokenize = {variant.tokenize!r}: cannot be used here ({reason})") from None
    unspaced = tokenize_of(references) != "13a"  # there a word of TER is a character
    ter = TER(case_sensitive=not variant.lowercase, normalized=unspaced, asian_support=unspaced)
    chrf = CHRF(lowercase=variant.lowercase)
    return {"bleu": score, "chrf": chrf, "ter": ter}


def text_scores(
    outputs: Sequence[str], references: Sequence[str], metrics: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, str]]:
    """The score of each metric by name, and its signature."""
    scores, signatures = {}, {}
    for name, metric in metrics.items():
        scores[name] = float(metric.corpus_score(list(outputs), [list(references)]).score)
        signatures[name] = str(metric.get_signature())
    return scores, signatures


def sentence_bleu(outputs: Sequence[str], references: Sequence[str], variant: Variant | None = None) -> list[float]:
    """BLEU of each sentence, smoothed, for lists of the worst and the best."""
    from sacrebleu.metrics import BLEU

    variant = variant or Variant()
    tokenize = tokenize_of(references) if variant.tokenize == "auto" else variant.tokenize
    metric = BLEU(tokenize=tokenize, lowercase=variant.lowercase, effective_order=True)
    return [
        float(metric.sentence_score(output, [reference]).score)
        for output, reference in zip(outputs, references, strict=True)
    ]


def evaluate(
    translator: Translator, pairs: Sequence[Pair], options: SearchConfig, variant: Variant | None = None
) -> tuple[Scores, list[Translation]]:
    """Translate the pairs' sources and compare with their targets; where pairs carry an alignment, score that too."""
    if not pairs:
        raise UserError("pairs = []: there is nothing to score")
    references = [pair.target for pair in pairs]
    metrics = text_metrics(variant or Variant(), references)  # first: a wrong name should not cost a translation
    results = list(translator.translate([pair.source for pair in pairs], options))
    outputs = [result.text for result in results]
    texts, signatures = text_scores(outputs, references, metrics)
    forced = forced_scores(translator, pairs)
    same = str.casefold if variant is not None and variant.lowercase else str
    equal = sum(same(output) == same(reference) for output, reference in zip(outputs, references, strict=True))
    scores = Scores(
        sentences=len(pairs),
        bleu=texts["bleu"],
        chrf=texts["chrf"],
        ter=texts["ter"],
        perplexity=math.exp(min(forced.loss, 50.0)),
        token_accuracy=100 * forced.accuracy,
        exact=100 * equal / max(1, len(pairs)),
        signatures=signatures,
        aer=alignment_errors(translator, [pair for pair in pairs if _aligned(pair)]),
        by_length=scores_by_length(pairs, outputs, metrics["bleu"]),
    )
    return scores, results


def _aligned(pair: Pair) -> bool:
    """Whether its links can be compared with attention: in scripts without spaces, words are others than theirs."""
    return pair.alignment is not None and not UNSPACED.search(pair.source + pair.target)


def scores_by_length(pairs: Sequence[Pair], outputs: Sequence[str], metric: Any) -> dict[str, LengthScore]:
    """BLEU of the sentences with 1-10, 11-20, 21-30 and more words in the source."""
    found: dict[str, LengthScore] = {}
    lengths = [len(UNSPACED.sub(" x ", pair.source).split()) for pair in pairs]
    for low, high in pairwise((0, *LENGTHS, 10**9)):
        chosen = [place for place, length in enumerate(lengths) if low < length <= high]
        if chosen:
            references = [pairs[place].target for place in chosen]
            score = metric.corpus_score([outputs[place] for place in chosen], [references]).score
            name = f"{low + 1}-{high}" if high in LENGTHS else f"over {low}"
            found[name] = LengthScore(len(chosen), float(score))
    return found


@dataclass(frozen=True)
class Forced:
    """How well references are predicted, each token given the true tokens before it."""

    nats: float = 0.0
    right: int = 0
    tokens: int = 0

    def __add__(self, other: Forced) -> Forced:
        return Forced(self.nats + other.nats, self.right + other.right, self.tokens + other.tokens)

    @property
    def loss(self) -> float:
        return self.nats / max(1, self.tokens)

    @property
    def accuracy(self) -> float:
        return self.right / max(1, self.tokens)


@torch.inference_mode()
def forced_scores(translator: Translator, pairs: Sequence[Pair], batch_tokens: int = 4096) -> Forced:
    """Loss (in nats, not smoothed) and accuracy per target token. What is too long for the model is cut off."""
    model, marks = translator.model, translator.marks
    sources = [row[: translator.reads] for row in translator.encode([pair.source for pair in pairs])]
    targets = [row[: translator.writes] for row in translator.tokenizer.encode_targets([pair.target for pair in pairs])]
    lengths = np.array([(len(s) + 1, len(t) + 1) for s, t in zip(sources, targets, strict=True)]).reshape(-1, 2)
    total = Forced()
    for rows in plan(lengths, batch_tokens=batch_tokens, shuffle=False):
        batch = marks.batch([sources[row] for row in rows], [targets[row] for row in rows]).to(translator.device)
        answers = batch.target[:, 1:]
        real = answers != marks.pad
        hidden = model(batch.source, batch.target[:, :-1])[real]
        for part, right in zip(hidden.split(CHUNK), answers[real].split(CHUNK), strict=True):
            logits = model.output(part).float()  # (chunk, V): of a whole batch they would be the most that is held
            nats = F.cross_entropy(logits, right, reduction="sum").item()
            total += Forced(nats, int((logits.argmax(dim=-1) == right).sum()), len(right))
    return total
