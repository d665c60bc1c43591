"""What a word is, said once: for tokenizers (no subword crosses it), for alignments and for pictures.

A word is a run of letters, marks and digits, with an apostrophe that ends it ("l'"); a punctuation mark or symbol is a
word of its own. Spaces become the mark `▁` at the start of the word they precede, so that joining pieces and putting
the spaces back restores the text. Other spaces, such as those that keep French marks on the line of their word, stand
there as they are.
"""

from tokenizers import Regex, pre_tokenizers

from regard.data.tables import not_utf8

SPACE = "▁"
_PIECE = Regex(r"[▁\p{Z}]?[^▁\p{P}\p{S}\p{Z}]+['’]?|[▁\p{Z}]?[[\p{P}\p{S}]&&[^▁]]|[▁\p{Z}]")

marked = pre_tokenizers.Split(_PIECE, behavior="isolated")
"""Parts a text whose spaces are marked already."""
splitter = pre_tokenizers.Sequence(
    [pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=False), marked]
)
"""The pre-tokenizer that every tokenizer of the package uses."""


def split_words(text: str) -> list[str]:
    """`"L'homme dort."` -> `["L'", "homme", "dort", "."]`."""
    try:
        parted = splitter.pre_tokenize_str(text)
    except (TypeError, UnicodeEncodeError):
        raise not_utf8([text]) from None
    return [bare(piece) for piece, _ in parted if bare(piece)]


def bare(piece: str) -> str:
    """A piece without the space before it."""
    return piece.lstrip(SPACE).strip()
