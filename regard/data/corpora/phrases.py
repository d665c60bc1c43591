"""Noun phrases: determiner, adjectives and noun, with French agreement and order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from regard.data.corpora import lexicon
from regard.data.corpora.aligned import Draw, Words, piece
from regard.data.corpora.inflection import IL, ILS, agree, article, elides, english_s, french_plural

_POSSESSIVES = {
    "my": "mon ma mes",
    "his": "son sa ses",
    "her": "son sa ses",
    "our": "notre notre nos",
    "your": "votre votre vos",
    "their": "leur leur leurs",
}
_DETERMINERS = {
    **{english: tuple(french.split()) for english, french in _POSSESSIVES.items()},
    "the": ("le", "la", "les"),
    "a": ("un", "une", ""),
    "this": ("ce", "cette", "ces"),
    "every": ("chaque", "chaque", ""),
}
_UNOWNED = frozenset({"wild", "inside", "at", "on", "water"})
_BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    classes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    english: str
    masculine: str
    feminine: str
    before_vowel: str
    kind: str
    classes: frozenset[str]

    @property
    def precedes(self) -> bool:
        return self.kind == "before"

    def french(self, feminine: bool, plural: bool) -> str:
        return agree(self.masculine, self.feminine, feminine, plural)


@dataclass(slots=True)
class Nominal:
    """A noun phrase, a name or a pronoun, with what a verb or an adjective must agree with."""

    english: Words
    french: Words
    person: int = IL
    feminine: bool = False
    plural: bool = False
    noun: Noun | None = None
    pronoun: str = ""
    """The English pronoun that would refer back to it."""
    mark: int = 0


def expand(classes: str) -> frozenset[str]:
    """Class names, with the groups among them replaced by their members."""
    names = classes.replace(",", " ").split()
    return frozenset(" ".join(lexicon.GROUPS.get(name, name) for name in names).split())


@cache
def nouns() -> tuple[Noun, ...]:
    found = []
    for classes, entries in lexicon.NOUNS.items():
        for entry in entries.split(", "):
            english, french, gender = entry.split()
            one, _, many = english.partition("/")
            un, _, des = french.partition("/")
            plurals = many or english_s(one), des or french_plural(un)
            found.append(Noun(one, plurals[0], un, plurals[1], gender == "f", frozenset(classes.split())))
    return tuple(found)


@cache
def nouns_of(classes: frozenset[str]) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns() if noun.classes & classes)


@cache
def adjectives() -> tuple[Adjective, ...]:
    found = []
    for key, entries in lexicon.ADJECTIVES.items():
        kind, _, classes = key.partition(" ")
        for entry in entries.split(", "):
            english, masculine, feminine, *vowel = entry.split()
            found.append(Adjective(english, masculine, feminine, (vowel or [masculine])[0], kind, expand(classes)))
    return tuple(found)


@cache
def adjectives_for(noun: Noun, kinds: str) -> tuple[Adjective, ...]:
    return tuple(a for a in adjectives() if a.classes & noun.classes and a.kind in kinds.split())


def noun_phrase(
    draw: Draw,
    noun: Noun,
    *,
    negated: bool = False,
    object_: bool = False,
    plain: bool = False,
    determiner: str = "",
    adjective: float = 0.45,
    plural: float = 0.35,
) -> Nominal:
    """A determiner, up to two adjectives and a noun, drawn at random.

    `negated`: the verb is, so indefinite objects take "de" and quantities stay away. `plain`: only determiners that
    suit a question. `determiner`: this one, and no other.
    """
    mass = bool(noun.classes & {"mass", "drink"})
    many = not mass and draw.chance(plural)
    modifiers = _modifiers(draw, noun) if draw.chance(adjective) else ()
    determiner = determiner or _choose_determiner(draw, noun, mass, many, negated, object_, plain)
    return phrase(draw, noun, determiner, modifiers, many=many, negated=negated and object_)


def phrase(
    draw: Draw,
    noun: Noun,
    determiner: str,
    modifiers: Sequence[Adjective] = (),
    *,
    many: bool = False,
    negated: bool = False,
) -> Nominal:
    """This determiner, these adjectives, this noun: agreement and order.

    The determiner "kind" stands for the whole kind, "bread" = "le pain"; "quantity" for a number, or many.
    """
    mark = draw.mark()
    following = noun.french_plural if many else noun.french
    vowel = not noun.feminine and not many and elides(following)
    english: Words = []
    before: Words = []
    after: Words = []
    for modifier in modifiers:
        draw.combinations.add((modifier.english, noun.english))
        quality = draw.mark()
        english.append((modifier.english, quality))
        french = modifier.before_vowel if vowel and modifier.precedes else modifier.french(noun.feminine, many)
        (before if modifier.precedes else after).append((french, quality))
    english.append((noun.english_plural if many else noun.english, mark))
    words = [*before, (following, mark), *after]
    _determine(draw, determiner, noun, many, english, words, bool(before), mark, negated)
    pronoun = "they" if many else "it" if "person" not in noun.classes else "she" if noun.feminine else "he"
    return Nominal(english, words, ILS if many else IL, noun.feminine, many, noun, pronoun, mark)


def _modifiers(draw: Draw, noun: Noun) -> Sequence[Adjective]:
    """One adjective, or two that sit on either side of the French noun: "small white", "petit ... blanc"."""
    usable = adjectives_for(noun, "before colour origin state trait")
    if not usable:
        return []
    first = draw.choice(usable)
    closing = adjectives_for(noun, "colour origin")
    if first.precedes and closing and draw.chance(0.25):
        return [first, draw.choice(closing)]
    return [first]


def _choose_determiner(
    draw: Draw, noun: Noun, mass: bool, many: bool, negated: bool, object_: bool, plain: bool
) -> str:
    person = "person" in noun.classes
    ownable = not person or ("own" in noun.classes and not (many and "parent" in noun.classes))
    ownable = ownable and ("home" in noun.classes or not noun.classes & _UNOWNED)
    choices = ["the"] * 6 + ["this"]
    if ownable:
        choices += ["my", "his", "her", "our", "your", "their"]
    family = "own" in noun.classes and "skilled" not in noun.classes
    definite_only = family or (negated and (not object_ or bool(noun.classes & _UNOWNED)))
    if not definite_only and not (plain and (mass or many)):
        if mass or many:
            choices += ["any" if negated else "some"] * 3
        else:
            choices += ["a"] * 4
        if not negated and not plain and not mass:
            choices += ["quantity"] * 4 if many else ["every"] * (not object_)
    return draw.choice(choices)


def _determine(
    draw: Draw,
    determiner: str,
    noun: Noun,
    many: bool,
    english: Words,
    french: Words,
    adjective_first: bool,
    mark: int,
    negated: bool,
) -> None:
    """Puts the determiner in front of both sides."""
    if determiner == "kind":
        french.insert(0, (_DETERMINERS["the"][2 if many else int(noun.feminine)], mark))
        return
    if determiner == "quantity":
        left, right = piece(draw, draw.choice(lexicon.QUANTITIES.split()))
        english[:0], french[:0] = left, right
        return
    mark = draw.mark()
    if negated and determiner in {"a", "any"}:
        right = [("de", mark)]
    elif determiner in {"some", "any"}:
        plural = [("de" if adjective_first else "des", mark)]
        right = plural if many else [("de", mark), ("la" if noun.feminine else "le", mark)]
    else:
        form = _DETERMINERS[determiner][2 if many else int(noun.feminine)]
        right = [(_BEFORE_VOWEL.get(form, form) if elides(french[0][0]) else form, mark)]
    if determiner == "a":
        determiner = article(english[0][0])
    english.insert(0, ("these" if determiner == "this" and many else determiner, mark))
    french[:0] = right
