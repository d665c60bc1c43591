"""A published folder opened as a trained model of ours, and a trained model of ours written as one.

Each family has a line in both registries; its tables of names are in its own file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from regard.errors import UserError
from regard.hub.decoders import LAYOUTS as DECODERS
from regard.hub.decoders import read_decoder, write_decoder
from regard.hub.encoder_runs import export_encoder, open_encoder
from regard.hub.encoders import LAYOUTS as ENCODERS
from regard.hub.folder import Folder, read_folder
from regard.hub.seq2seq import ARCHITECTURES, export_seq2seq, open_seq2seq
from regard.hub.vit import read_vit, write_vit
from regard.tasks.saved import Saved

READERS: dict[str, Callable[[Folder], Saved]] = {
    **dict.fromkeys(DECODERS, read_decoder),
    **dict.fromkeys(ENCODERS, open_encoder),
    **dict.fromkeys(ARCHITECTURES, open_seq2seq),
    "vit": read_vit,
    "deit": read_vit,
}
"""By the `model_type` of config.json."""
WRITERS: dict[str, Callable[[Saved, Path], None]] = {
    "gpt": write_decoder,
    "llama": write_decoder,
    **{str(layout.means["kind"]): export_encoder for layout in ENCODERS.values()},
    **dict.fromkeys(("transformer", "bart", "t5"), export_seq2seq),
    "vit": write_vit,
}
"""By the `kind` of our model; the folder exists and is empty."""


def open_published(path: Path) -> Saved:
    folder = read_folder(path)
    if folder.model_type not in READERS:
        raise UserError(f"{path}: model_type = {folder.model_type!r}: not supported; these are: {', '.join(READERS)}")
    return READERS[folder.model_type](folder)


def export(saved: Saved, out: Path) -> None:
    """Write the model as a folder that Hugging Face's `transformers` opens."""
    kind = saved.config.model.kind
    if kind not in WRITERS:
        raise UserError(f"{saved.path}: a {kind} has no published layout; these have: {', '.join(WRITERS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: is there already; choose another --out")
    made = [path for path in (out, *out.parents) if not path.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        WRITERS[kind](saved, out)
    except BaseException:  # half a folder would look like a whole one
        shutil.rmtree(made[-1] if made else out)
        raise
