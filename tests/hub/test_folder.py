"""Published folders are read whole, in one file or in shards; what cannot be read is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from regard.errors import UserError
from regard.hub.folder import read_folder, write_folder

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def peer() -> transformers.BertModel:
    torch.manual_seed(0)
    return transformers.BertModel(
        transformers.BertConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
        )
    )


@pytest.mark.parametrize("shard", ["1GB", "20KB"])
def test_all_weights_are_read(peer: transformers.BertModel, tmp_path: Path, shard: str) -> None:
    peer.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "20KB")
    folder = read_folder(tmp_path)
    assert folder.model_type == "bert"
    assert folder.config["hidden_size"] == 16
    expected = peer.state_dict()
    assert folder.weights.keys() == expected.keys()
    assert all(torch.equal(folder.weights[name], weight) for name, weight in expected.items())


def test_what_is_written_opens_in_transformers(peer: transformers.BertModel, tmp_path: Path) -> None:
    write_folder(tmp_path, peer.config.to_dict(), peer.state_dict())
    again = transformers.BertModel.from_pretrained(tmp_path)
    assert all(torch.equal(again.state_dict()[name], weight) for name, weight in peer.state_dict().items())
    assert read_folder(tmp_path).weights.keys() == peer.state_dict().keys()


def test_bad_folders(tmp_path: Path, peer: transformers.BertModel) -> None:
    def refused(text: str) -> None:
        with pytest.raises(UserError, match=text):
            read_folder(tmp_path)

    refused("no config.json")
    (tmp_path / "config.json").write_text("{", encoding="utf8")
    refused("cannot be read as JSON")
    (tmp_path / "config.json").write_text("[]", encoding="utf8")
    refused("must hold a JSON object")
    (tmp_path / "config.json").write_text("{}", encoding="utf8")
    refused("has no weights")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    refused("can run code when it is opened.*save_pretrained")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}), encoding="utf8")
    refused(r"model-1.safetensors: no such file")
    write_folder(tmp_path, {}, {"b": torch.zeros(2)})
    (tmp_path / "model.safetensors").rename(tmp_path / "model-1.safetensors")
    refused("names weights that no file has: a")
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 20)
    refused("damaged or cut short")
