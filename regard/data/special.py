"""Tokens that are no text, by the role they play."""

from dataclasses import dataclass, fields

THEIR_ROLES = {
    "pad": "pad_token", "unknown": "unk_token", "begin": "bos_token", "end": "eos_token",
    "first": "cls_token", "separator": "sep_token", "mask": "mask_token",
}  # fmt: skip


@dataclass(frozen=True)
class Special:
    """The ids of a tokenizer's special tokens; None where it has no such token."""

    pad: int | None = None
    unknown: int | None = None
    begin: int | None = None  # before an output, or a text
    end: int | None = None  # after it
    first: int | None = None  # what stands for the whole input: [CLS]
    separator: int | None = None  # between the parts of an input, and after the last: [SEP]
    mask: int | None = None

    @property
    def ids(self) -> set[int]:
        values = (getattr(self, field.name) for field in fields(self))
        return {value for value in values if value is not None}
