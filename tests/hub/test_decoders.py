"""GPT-1, GPT-2 and Llama equal Hugging Face's on the same weights, in both directions, whatever the padding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from regard.config import Config, SearchConfig
from regard.data.subwords import Subwords
from regard.decoding import Limits, search
from regard.errors import UserError
from regard.hub.decoders import read_decoder, write_decoder
from regard.hub.folder import read_folder
from regard.hub.gpt2 import GPT1, GPT2
from regard.hub.layout import Layout
from regard.hub.llama import LLAMA
from regard.hub.published import export
from regard.inference import pack
from regard.models import build, parse_model
from regard.models.decoder import Decoder
from regard.nn.record import Recording
from regard.nn.weights import load_weights, weights_of
from regard.run import Run
from regard.tasks.saved import Saved
from regard.training.saved import open_saved

transformers = pytest.importorskip("transformers")

VOCABULARY, END = 60, 2
_GPT = {"vocab_size": VOCABULARY, "n_positions": 40, "bos_token_id": 1, "eos_token_id": END}
_LLAMA = {"vocab_size": VOCABULARY, "max_position_embeddings": 40, "bos_token_id": 1, "eos_token_id": END}


def gpt1(**shape: Any) -> Any:
    return transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig(**_GPT, **shape))


def gpt2(**shape: Any) -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**_GPT, **shape))


def llama(**shape: Any) -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**_LLAMA, **shape))


PEERS: dict[str, tuple[Layout, Callable[[], Any]]] = {
    "gpt-1": (GPT1, lambda: gpt1(n_layer=2, n_embd=16, n_head=2)),
    "gpt-2": (GPT2, lambda: gpt2(n_layer=1, n_embd=16, n_head=2)),
    "gpt-2, inner": (GPT2, lambda: gpt2(n_layer=3, n_embd=24, n_head=3, n_inner=40, activation_function="gelu")),
    "gpt-2, untied": (GPT2, lambda: gpt2(n_layer=2, n_embd=8, n_head=1, tie_word_embeddings=False)),
    "llama": (
        LLAMA,
        lambda: llama(
            num_hidden_layers=2, hidden_size=16, num_attention_heads=2, num_key_value_heads=2, intermediate_size=24
        ),
    ),
    "llama, grouped heads": (
        LLAMA,
        lambda: llama(
            num_hidden_layers=3, hidden_size=24, num_attention_heads=6, num_key_value_heads=2, intermediate_size=40,
            tie_word_embeddings=True, rope_parameters={"rope_theta": 500.0, "rope_type": "default"},
        ),
    ),
    "llama, stretched": (
        LLAMA,
        lambda: llama(
            num_hidden_layers=2, hidden_size=32, num_attention_heads=2, num_key_value_heads=1, intermediate_size=24,
            rope_parameters={
                "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
            },
        ),
    ),
    "llama, wide heads": (
        LLAMA,
        lambda: llama(
            num_hidden_layers=2, hidden_size=20, num_attention_heads=4, num_key_value_heads=1, head_dim=8,
            intermediate_size=32, hidden_act="gelu",
        ),
    ),
}  # fmt: skip


def peer_of(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    peer = PEERS[name][1]().eval()
    peer.set_attn_implementation("eager") if name != "gpt-1" else None
    with torch.no_grad():
        for weight in peer.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)  # nothing stays zero or one, and outputs vary
    return peer


def ours_of(name: str, peer: Any) -> Decoder:
    layout = PEERS[name][0]
    config = parse_model(layout.settings(peer.config.to_dict()))
    model = build(config, 0).eval()
    assert isinstance(model, Decoder)
    weights, unused, missing = layout.to_ours(peer.state_dict(), config.model_dump())
    assert (unused, missing) == ([], [])
    load_weights(model, weights, Path(name))
    return model


def prompts(pad_left: bool, pad: int = -1) -> tuple[Tensor, Tensor]:
    """Three rows of 11, 7 and 3 tokens, and where they are real."""
    ids = torch.randint(3, VOCABULARY, (3, 11), generator=torch.Generator().manual_seed(1))
    places = torch.arange(11).expand(3, -1)
    lengths = torch.tensor([[11], [7], [3]])
    real = places >= 11 - lengths if pad_left else places < lengths
    return ids.masked_fill(~real, pad), real


@torch.no_grad()
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", PEERS)
def test_logits_and_attention_are_equal(name: str, left: bool) -> None:
    peer = peer_of(name)
    ours = ours_of(name, peer)
    ids, real = prompts(left)
    places = real.cumsum(dim=1).sub(1).clamp(min=0)
    theirs = peer(input_ids=ids.clamp(min=0), attention_mask=real.long(), position_ids=places, output_attentions=True)
    recording = Recording()
    logits = ours.output(ours(ids, record=recording))
    torch.testing.assert_close(logits[real], theirs.logits[real], atol=1e-5, rtol=1e-5)
    for number, expected in enumerate(theirs.attentions):
        found = recording.batch(f"decoder.{number}.self")
        rows = real[:, None, :, None].expand_as(expected)
        torch.testing.assert_close(found[rows], expected[rows], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", PEERS)
def test_there_and_back_is_the_same(name: str) -> None:
    layout, peer = PEERS[name][0], peer_of(name)
    ours = ours_of(name, peer)
    back = layout.to_theirs(weights_of(ours), ours.config.model_dump())
    expected = dict(peer.state_dict())
    if ours.config.tie_output:  # type: ignore[attr-defined]
        expected.pop("lm_head.weight")
    assert back.keys() == expected.keys()
    assert all(torch.equal(back[key], weight) for key, weight in expected.items())
    config = type(peer.config).from_dict(layout.config(ours.config.model_dump())).to_dict()
    theirs = peer.config.to_dict()
    names = {key.partition(".")[0] for key in layout.config(ours.config.model_dump())}
    for key in names & theirs.keys():
        assert config[key] == theirs[key], key


def found(model: Decoder, ids: Tensor, options: SearchConfig, new: int) -> list[list[int]]:
    limits = Limits(ids[:, -1].tolist(), END, [new] * len(ids))
    return [best[0].ids for best in search(model, ids[:, :-1], options, limits)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("name", PEERS)
def test_outputs_are_token_for_token_equal(name: str, beam: int, packed: bool) -> None:
    peer = peer_of(name)
    ours = ours_of(name, peer)
    ids, real = prompts(pad_left=True)
    if name == "gpt-1":  # it does not count places from the first real token
        ids, real = ids[:1], real[:1]
    new = 16
    theirs = peer.generate(
        ids.clamp(min=0), attention_mask=real.long(), num_beams=beam, do_sample=False, max_new_tokens=new,
        early_stopping=False, length_penalty=1.0, pad_token_id=0, eos_token_id=END,
    )[:, ids.shape[1] :].tolist()  # fmt: skip
    expected = [row[: row.index(END)] if END in row else row for row in theirs]
    options = SearchConfig(method="greedy" if beam == 1 else "beam", beam=beam)
    assert found(pack(ours) if packed else ours, ids, options, new) == expected


def test_a_setting_that_ours_has_no_choice_for_is_refused() -> None:
    with pytest.raises(UserError, match=r"rope_parameters\.rope_type = 'yarn': must be one of 'default', 'llama3'"):
        LLAMA.settings({"rope_parameters": {"rope_type": "yarn"}})
    with pytest.raises(UserError, match=r"rope_scaling\.type = 'linear': only None"):
        LLAMA.settings({"rope_scaling": {"type": "linear", "factor": 2.0}})
    with pytest.raises(UserError, match="activation_function = 'mish': must be one of 'relu'"):
        GPT2.settings({"activation_function": "mish"})


STORIES = Path(__file__).parents[3] / "shared" / "data" / "stories15M"


@pytest.mark.skipif(not STORIES.is_dir(), reason="the real weights are not beside the repository")
@pytest.mark.parametrize("beam", [1, 3])
def test_real_weights_tell_the_same_story(beam: int) -> None:

    peer = transformers.AutoModelForCausalLM.from_pretrained(STORIES, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(STORIES)
    run = Run.load(STORIES)
    for prompt, new in (("Once upon a time", 60), ("7", 12), ("3 dogs", 12), ("日本", 12), ("😀 smiled", 12)):
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        theirs = peer.generate(
            ids, num_beams=beam, do_sample=False, max_new_tokens=new, early_stopping=False, pad_token_id=0
        )[0].tolist()  # fmt: skip
        options = SearchConfig(method="greedy" if beam == 1 else "beam", beam=beam, max_length=new)
        (ours,) = run.generate(prompt, options)
        assert [*ours.prompt_ids, *ours.ids] == theirs
        assert prompt + ours.text == tokenizer.decode(theirs, skip_special_tokens=True)


@pytest.mark.skipif(not STORIES.is_dir(), reason="the real weights are not beside the repository")
def test_repetition_is_forbidden_as_in_transformers() -> None:
    peer = transformers.AutoModelForCausalLM.from_pretrained(STORIES, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(STORIES)
    prompt = "The cat and the cat and the"
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    theirs = peer.generate(ids, do_sample=False, max_new_tokens=30, no_repeat_ngram_size=2, pad_token_id=0)[0].tolist()
    (ours,) = Run.load(STORIES).generate(prompt, method="greedy", max_length=30, no_repeat_ngram=2)
    assert [*ours.prompt_ids, *ours.ids] == theirs


@pytest.mark.parametrize("before", [[], [2]])
def test_an_exported_tokenizer_puts_before_a_text_what_the_run_was_trained_with(
    tmp_path: Path, before: list[int]
) -> None:
    tokenizer = Subwords.learn(["the lion and the mouse"] * 3, kind="byte-bpe", vocabulary=300)
    settings = {"kind": "gpt", "layers": 1, "width": 8, "heads": 1, "max_length": 16}
    model = parse_model(settings)
    weights = weights_of(build(model, len(tokenizer)))
    for facts in ({"context": 16, "before": before, "blank": []}, {}):  # a language model's, and a translator's
        saved = Saved(tmp_path, Config(task="language", model=model), weights, tokenizer, facts)
        out = tmp_path / f"out-{len(facts)}"
        out.mkdir()
        write_decoder(saved, out)
        theirs = transformers.AutoTokenizer.from_pretrained(out)
        expected = facts.get("before", [])
        assert theirs.eos_token_id == tokenizer.special.end
        assert "token_type_ids" not in theirs("the lion")
        assert theirs("the lion").input_ids == [*expected, *tokenizer.encode("the lion")]
        assert read_decoder(read_folder(out)).facts["before"] == expected


def published(folder: Path, **more: Any) -> tuple[Any, Subwords]:
    """A random GPT-2 with a tokenizer, written by them."""
    tokenizer = Subwords.learn(["the lion and the mouse"] * 3, kind="byte-bpe", vocabulary=300)
    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40, "vocab_size": len(tokenizer)}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape, eos_token_id=2, bos_token_id=1, **more))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    model.save_pretrained(folder)
    tokenizer.save(folder / "tokenizer.json")
    return model.eval(), tokenizer


def test_a_text_ends_with_any_of_the_ends_that_the_folder_names(tmp_path: Path) -> None:
    """As of models that were taught to answer: another token than the tokenizer's own may end it."""
    model, tokenizer = published(tmp_path)
    options = SearchConfig(method="greedy", max_length=20)
    (free,) = Run.load(tmp_path).generate("the lion", options)
    end = next(token for place, token in enumerate(free.ids) if place > 3 and token not in free.ids[:place])
    model.generation_config.update(eos_token_id=[2, end], do_sample=False, max_new_tokens=20, pad_token_id=0)
    model.save_pretrained(tmp_path)
    run = Run.load(tmp_path)
    (ours,) = run.generate("the lion", options)
    theirs = model.generate(torch.tensor([ours.prompt_ids]))[0].tolist()
    assert theirs == [*ours.prompt_ids, *ours.ids, end]
    assert ours.ended
    export(open_saved(tmp_path), tmp_path / "out")
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").eos_token_id == [2, end], "written back too"
    assert "".join(run.generator.stream("the lion", options)) == ours.text == tokenizer.decode(ours.ids)


def test_texts_are_drawn_as_the_folder_says(tmp_path: Path) -> None:
    model, _ = published(tmp_path)
    model.generation_config.update(do_sample=True, temperature=0.6, top_p=0.9, repetition_penalty=1.1)
    model.save_pretrained(tmp_path)
    decode = Run.load(tmp_path).config.decode
    assert (decode.method, decode.temperature, decode.top_p, decode.repetition_penalty) == ("sample", 0.6, 0.9, 1.1)
    model.generation_config = transformers.GenerationConfig(do_sample=False)
    model.save_pretrained(tmp_path)
    assert Run.load(tmp_path).config.decode == SearchConfig(method="sample")


def test_a_refused_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UserError("no")

    published(tmp_path / "folder")
    monkeypatch.setattr("regard.hub.decoders.write_tokenizer", refuse)
    with pytest.raises(UserError, match="no"):
        export(open_saved(tmp_path / "folder"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tied_table_may_have_its_other_name(tmp_path: Path) -> None:
    model, _ = published(tmp_path)
    weights = {name: weight.clone() for name, weight in model.state_dict().items() if name != "transformer.wte.weight"}
    save_file(weights, tmp_path / "model.safetensors")
    assert torch.equal(read_decoder(read_folder(tmp_path)).weights["words.weight"], model.lm_head.weight)
    settings = json.loads((tmp_path / "config.json").read_text()) | {"tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"weights are missing: transformer\.wte\.weight"):
        read_decoder(read_folder(tmp_path))


def test_packed_weights_are_refused(tmp_path: Path) -> None:
    published(tmp_path, quantization_config={"quant_method": "fp8"})
    with pytest.raises(UserError, match=r"quantization_config \(fp8\): its weights are packed"):
        read_decoder(read_folder(tmp_path))
