"""Folders of encoders as people have them: without a pooler, with added tokens, with names that repeat."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertModel, BertTokenizerFast
from transformers import BertForSequenceClassification as Classifier

import regard
from regard.hub.published import export
from regard.training.saved import open_saved

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "dog", "##s", "a", "was", "good", "bad"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def settings(**more: object) -> BertConfig:
    return BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, **SIZES, **more)


def folder(path: Path, model: torch.nn.Module) -> Path:
    path.mkdir()
    (path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf8")
    BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
    model.save_pretrained(path)  # type: ignore[operator]
    return path


def test_an_encoder_without_a_pooler_has_vectors(tmp_path: Path) -> None:
    theirs = BertModel(settings(), add_pooling_layer=False).eval()
    run = regard.Run.load(folder(tmp_path / "a", theirs))
    inputs = AutoTokenizer.from_pretrained(tmp_path / "a")(["the cats sat"], return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**inputs).last_hidden_state.mean(dim=1)
    torch.testing.assert_close(torch.tensor(run.embed(["the cats sat"])), expected, atol=1e-5, rtol=0)


def test_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    model = Classifier(settings(num_labels=3, id2label={0: "same", 1: "other", 2: "same"}))
    run = regard.Run.load(folder(tmp_path / "a", model))
    assert list(run.classify(["the cat"])[0].probabilities) == ["same_0", "other", "same_2"]


@pytest.mark.parametrize("where", ["added_tokens.json", "tokenizer_config.json"])
def test_tokens_added_to_an_older_folder_are_known(tmp_path: Path, where: str) -> None:
    config = settings()
    config.vocab_size += 1
    path = folder(tmp_path / "a", BertModel(config))
    (path / "tokenizer.json").unlink()
    (path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf8")
    for name in ("added_tokens.json", "tokenizer_config.json"):
        (path / name).unlink(missing_ok=True)
    token = {"content": "<drug>", "special": False}
    added = {"<drug>": 14} if where == "added_tokens.json" else {"added_tokens_decoder": {"14": token}}
    (path / where).write_text(json.dumps(added), encoding="utf8")
    tokenizer = open_saved(path).tokenizer
    assert tokenizer.tokens(tokenizer.encode("the <drug> cat")) == ["the", "<drug>", "cat"]
    (path / where).write_text(json.dumps(added).replace("14", "19"), encoding="utf8")
    with pytest.raises(regard.UserError, match="the added token '<drug>' with the number 19 cannot be read"):
        open_saved(path)


def train(tmp_path: Path, model: str, labels: tuple[str, str]) -> regard.Run:
    file = tmp_path / "a.tsv"
    lines = [f"the {'cat ' * (n % 7)}was {('bad', 'good')[n % 2]}\t{labels[n % 2]}" for n in range(120)]
    file.write_text("text\tlabel\n" + "\n".join(lines) + "\n", encoding="utf8")
    small = {"model.layers": 1, "model.width": 32, "model.inner": 32, "model.heads": 2, "tokenizer.vocabulary": 80}
    chosen = {**small, "train.epochs": 2.0, "train.device": "cpu", "train.learning_rate": 1e-2}
    return regard.train("classify", file, out=tmp_path / "run", model=model, settings=chosen, quiet=True)


def test_an_exported_xlnet_answers_in_batches_as_alone(tmp_path: Path) -> None:
    run = train(tmp_path, "xlnet", ("no", "yes"))
    export(open_saved(run.folder.path), tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    texts = ["the was good", "the cat cat cat cat was bad"]
    with torch.no_grad():
        found = theirs(**tokenizer(texts, padding=True, return_tensors="pt")).logits.softmax(dim=-1)
    expected = [list(one.probabilities.values()) for one in run.classify(texts)]
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-5, rtol=0)


def test_a_bigbird_can_be_exported_as_it_is_trained(tmp_path: Path) -> None:
    run = train(tmp_path, "bigbird", ("no", "yes"))
    export(open_saved(run.folder.path), tmp_path / "out")
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    text = ["the cat cat was good"]
    inputs = AutoTokenizer.from_pretrained(tmp_path / "out")(text, return_tensors="pt")
    with torch.no_grad():
        found = theirs(**inputs).logits.softmax(dim=-1)[0]
    assert found.tolist() == pytest.approx(list(run.classify(text)[0].probabilities.values()), abs=1e-5)


def test_an_exported_model_of_numbers_can_teach(tmp_path: Path) -> None:
    run = train(tmp_path, "bert", ("-0.5", "2.5"))
    export(open_saved(run.folder.path), tmp_path / "out")
    again = regard.Run.load(tmp_path / "out")
    assert again.saved.facts["labels"] == []
    assert again.classify(["the cat was good"])[0].number == pytest.approx(
        run.classify(["the cat was good"])[0].number, abs=1e-5
    )
