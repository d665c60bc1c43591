"""Clauses: a subject, a verb in some tense, and what follows, built in both languages in step.

Every verb has two marks: one for its tense, one for its meaning. "is sleeping" and "dort" share both; in "did not
sleep" / "n'a pas dormi", "did" meets "a" and "sleep" meets "dormi".
"""

from dataclasses import dataclass, field
from functools import cache

from regard.data.corpora import lexicon
from regard.data.corpora.aligned import Draw, Words
from regard.data.corpora.inflection import (
    ETRE,
    IL,
    ILS,
    JE,
    NOUS,
    VOUS,
    FrenchVerb,
    agree,
    conjugate,
    english_ing,
    english_s,
)
from regard.data.corpora.phrases import Adjective, Nominal, expand

PRONOUNS = {
    "I": ("je", JE, False, False),
    "he": ("il", IL, False, False),
    "she": ("elle", IL, True, False),
    "we": ("nous", NOUS, False, True),
    "you": ("vous", VOUS, False, True),
    "they": ("ils", ILS, False, True),
}
"""English -> French, person, feminine, plural. Without an antecedent, "they" and "you" are masculine plural."""

OBJECT_PRONOUNS = {
    "me": ("me", JE, False, False),
    "him": ("le", IL, False, False),
    "her": ("la", IL, True, False),
    "us": ("nous", NOUS, False, True),
    "you": ("vous", VOUS, False, True),
    "them": ("les", ILS, False, True),
}

_MODALS = {"going": "aller", "can": "pouvoir", "must": "devoir", "want": "vouloir"}
_NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    base: str
    past: str
    particle: str
    french: FrenchVerb
    kind: str
    subjects: frozenset[str]
    objects: frozenset[str]
    prepositions: str

    @property
    def stative(self) -> bool:
        return self.kind in "sg"

    @property
    def progresses(self) -> bool:
        return self.kind not in "sgi"


@dataclass(slots=True)
class Clause:
    """English in three parts, so that a question can put the auxiliary first; the French after its subject."""

    subject: Nominal
    auxiliary: Words
    rest: Words
    french: Words

    @property
    def english(self) -> Words:
        return [*self.subject.english, *self.auxiliary, *self.rest]

    @property
    def whole_french(self) -> Words:
        return [*self.subject.french, *self.french]

    def add(self, english: Words, french: Words) -> None:
        self.rest += english
        self.french += french


@dataclass(frozen=True, slots=True)
class Manner:
    """How a verb is said: its tense, its negation ("not", "never", "no longer") or an adverb such as "often"."""

    tense: str = "present"
    negation: str = ""
    adverb: str = ""


AFFIRMATIVE = Manner()


@dataclass(slots=True)
class Clitic:
    """A French object pronoun, which goes before the verb, and what a participle agrees with."""

    words: Words = field(default_factory=list)
    feminine: bool = False
    plural: bool = False


@cache
def verbs(table: str) -> tuple[Verb, ...]:
    """The verbs of `lexicon.VERBS`, `INTRANSITIVE` or `MOTION`."""
    found = []
    for line in table.strip().splitlines():
        english, past, french, kind, subjects, *last = line.split()
        base, _, particle = english.partition("+")
        objects = last[0] if last else ""
        moves = "/" in objects
        classes = frozenset[str]() if moves else expand(objects)
        verb = Verb(base, past, particle, conjugate(french), kind, expand(subjects), classes, objects if moves else "")
        found.append(verb)
    return tuple(found)


@cache
def plain_verbs(table: str) -> tuple[Verb, ...]:
    """Those that do not need a recipient."""
    return tuple(verb for verb in verbs(table) if verb.kind != "d")


def pronoun(draw: Draw, english: str, refers_to: Nominal | None = None) -> Nominal:
    """A subject pronoun; "it" and "they" take the gender of what they refer to."""
    mark = draw.mark()
    if refers_to is not None and english in {"it", "they"}:
        feminine, plural = refers_to.feminine, refers_to.plural
        french, person = ("elle" if feminine else "il") + "s" * plural, ILS if plural else IL
    else:
        french, person, feminine, plural = PRONOUNS[english]
    noun = refers_to.noun if refers_to is not None else None
    return Nominal([(english, mark)], [(french, mark)], person, feminine, plural, noun, english, mark)


def say(draw: Draw, subject: Nominal, verb: Verb, manner: Manner = AFFIRMATIVE, *, asked: bool = False) -> Clause:
    return say_with(draw, subject, verb, manner, Clitic(), asked=asked)


def say_with(
    draw: Draw, subject: Nominal, verb: Verb, manner: Manner, clitic: Clitic, *, asked: bool = False
) -> Clause:
    """A clause with its verb group; `clitic` is the French side of a pronoun, whose English side the caller adds."""
    tense, meaning, middle = draw.mark(), draw.mark(), draw.mark()
    auxiliary, rest = _english_group(verb, manner, subject.person, (tense, meaning, middle), asked)
    if verb.particle:
        rest.append((verb.particle, meaning))
    french = _french_group(verb, manner, subject, (tense, meaning, middle), clitic)
    return Clause(subject, auxiliary, rest, french)


def describe(
    draw: Draw, subject: Nominal, adjective: Adjective, manner: Manner = AFFIRMATIVE, degree: str = ""
) -> Clause:
    """ "The cat is (very) white"; degree is "very/très", or "er/plus" for "smaller" = "plus petit"."""
    if subject.noun is not None:
        draw.combinations.add((adjective.english, subject.noun.english))
    tense, middle, quality = draw.mark(), draw.mark(), draw.mark()
    person = subject.person
    etre = conjugate("être")
    forms = {"present": etre.present, "past": etre.imperfect, "future": etre.future}[manner.tense]
    english_middle, before, after = _middles(manner, middle)
    if manner.tense == "future":
        auxiliary, rest = [("will", tense)], [*english_middle, ("be", tense)]
    else:
        auxiliary, rest = [(_be(person, manner.tense == "past"), tense)], [*english_middle]
    french = [*before, (forms[person], tense), *after]
    english, mark = adjective.english, draw.mark() if degree else 0
    left, _, right = degree.partition("/")
    if left == "er":
        rest.append((lexicon.COMPARATIVES[english], quality | mark))
    else:
        rest += [(left, mark)] * bool(degree) + [(english, quality)]
    french += [(right, mark)] * bool(degree) + [(adjective.french(subject.feminine, subject.plural), quality)]
    return Clause(subject, auxiliary, rest, french)


def _middles(manner: Manner, mark: int) -> tuple[Words, Words, Words]:
    """What stands in the middle of the English verb group, before the French finite verb, and after it."""
    if manner.negation:
        english = [(word, mark) for word in manner.negation.split()]
        return english, [("ne", mark)], [(_NEGATIONS[manner.negation], mark)]
    if manner.adverb:
        left, right = manner.adverb.split("/")
        return [(left, mark)], [], [(right, mark)]
    return [], [], []


def _be(person: int, past: bool) -> str:
    if past:
        return "was" if person in {JE, IL} else "were"
    return "am" if person == JE else "is" if person == IL else "are"


def _english_group(
    verb: Verb, manner: Manner, person: int, marks: tuple[int, int, int], asked: bool
) -> tuple[Words, Words]:
    """The auxiliary, and the rest of the verb group."""
    tense, meaning, mark = marks
    middle, _, _ = _middles(manner, mark)
    third = person == IL
    base: Words = [(verb.base, meaning)]
    auxiliary: Words = []
    if manner.tense in {"present", "past", "want"} and (asked or manner.negation == "not"):
        auxiliary = [("did" if manner.tense == "past" else "does" if third else "do", tense)]
        wanting: Words = [("want", tense), ("to", tense)] if manner.tense == "want" else []
        return auxiliary, [*middle, *wanting, *base]
    match manner.tense:
        case "present":
            base = [(english_s(verb.base) if third else verb.base, tense | meaning)]
        case "past":
            base = [(verb.past, tense | meaning)]
        case "want":
            base = [("wants" if third else "want", tense), ("to", tense), *base]
        case "progressive" | "was":
            auxiliary, base = [(_be(person, manner.tense == "was"), tense)], [(english_ing(verb.base), meaning)]
        case "going":
            auxiliary, base = [(_be(person, False), tense)], [("going", tense), ("to", tense), *base]
        case "can" if manner.negation == "not":
            auxiliary, middle = [("cannot", tense | mark)], []
        case "can" | "must":
            auxiliary = [(manner.tense, tense)]
        case "future":
            auxiliary = [("will", tense)]
    return auxiliary, [*middle, *base]


def _french_group(verb: Verb, manner: Manner, subject: Nominal, marks: tuple[int, int, int], clitic: Clitic) -> Words:
    tense, meaning, mark = marks
    _, before, after = _middles(manner, mark)
    french, person = verb.french, subject.person
    match manner.tense:
        case "present" | "progressive":
            finite = french.present[person]
        case "future":
            finite = french.future[person]
        case "past" if not verb.stative:
            participle = french.participle
            if french.infinitive in ETRE:
                helper = "être"
                participle = agree(participle, participle + "e", subject.feminine, subject.plural)
            else:
                helper = "avoir"
                participle = agree(participle, participle + "e", clitic.feminine, clitic.plural)
            finite = conjugate(helper).present[person]
            return [*before, *clitic.words, (finite, tense), *after, (participle, meaning)]
        case "past" | "was":
            finite = french.imperfect[person]
        case modal:
            finite = conjugate(_MODALS[modal]).present[person]
            return [*before, (finite, tense), *after, *clitic.words, (french.infinitive, meaning)]
    return [*before, *clitic.words, (finite, tense | meaning), *after]
