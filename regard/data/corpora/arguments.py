"""What a verb calls for: who, whom, where and when, and which tenses it can take."""

from functools import cache

from regard.data.corpora import lexicon
from regard.data.corpora.aligned import Draw, piece
from regard.data.corpora.clauses import OBJECT_PRONOUNS, Clause, Clitic, Manner, Verb, pronoun, say, say_with, verbs
from regard.data.corpora.inflection import IL, ILS, JE, NOUS, VOUS
from regard.data.corpora.phrases import Nominal, Noun, noun_phrase, nouns_of

PERSON = frozenset({"person"})
_OWNABLE = frozenset({"pet", "object", "clothes", "vessel", "furniture", "vehicle", "book", "own", "home"})
_EVERYWHERE = frozenset({"inside", "at", "on", "building", "water"})
_OUTSIDE = frozenset({"inside", "on", "water"})
_RESTING = frozenset({"sleep", "dream", "wait", "stay"})
_COMMON = ("present", "present", "progressive", "progressive", "past", "past", "going", "can", "must", "want")
_THIRD = (*_COMMON, "future", "future", "was", "was")
_OTHERS = (*_COMMON, "present", "progressive")
"""Tenses by person: "I", "we" and "you" keep to fewer, so that each French form is seen often enough to learn."""


def choose_subject(draw: Draw, classes: frozenset[str], negated: bool = False, pronouns: float = 0.4) -> Nominal:
    """A pronoun, a name, "the boy and the girl", "the farmer's dog", or a noun phrase."""
    if "person" in classes and draw.chance(pronouns):
        return pronoun(draw, draw.choice(["I", "I", "he", "she", "we", "we", "you", "you", "they"]))
    if "person" in classes and draw.chance(0.1):
        return _name(draw)
    if "person" in classes and draw.chance(0.05):
        return _couple(draw)
    noun = draw.choice(nouns_of(classes))
    if noun.classes & _OWNABLE and draw.chance(0.14):
        return _owned(draw, noun)
    if draw.chance(0.04):
        subject = noun_phrase(draw, noun, determiner="the")
        add_relative(draw, subject)
        return subject
    return noun_phrase(draw, noun, negated=negated, plural=0.45)


def _name(draw: Draw) -> Nominal:
    name, gender = draw.choice(lexicon.NAMES.split(", ")).split()
    mark, feminine = draw.mark(), gender == "f"
    back = "she" if feminine else "he"
    return Nominal([(name, mark)], [(name, mark)], IL, feminine, False, None, back, mark)


def _couple(draw: Draw) -> Nominal:
    """Masculine unless both are feminine."""
    left, right = (
        noun_phrase(draw, noun, negated=True, adjective=0.15, plural=0)
        for noun in draw.random.sample(nouns_of(PERSON), 2)
    )
    english, french = piece(draw, "and/et")
    words = [*left.english, *english, *right.english], [*left.french, *french, *right.french]
    return Nominal(*words, ILS, left.feminine and right.feminine, True, None, "they", left.mark)


def _owned(draw: Draw, noun: Noun) -> Nominal:
    """ "the farmer's horse" = "le cheval du fermier": the "s" is both "le" and "de"."""
    own = draw.mark()
    if draw.chance(0.3):
        owner = _name(draw)
    else:
        people = [person for person in nouns_of(PERSON) if person is not noun]
        owner = noun_phrase(draw, draw.choice(people), negated=True, adjective=0.1, plural=0)
    plural = 0.0 if "parent" in noun.classes else 0.3
    head = noun_phrase(draw, noun, determiner="kind", adjective=0.3, plural=plural)
    (text, mark) = owner.english[-1]
    head.english[:0] = [*owner.english[:-1], (text + "'", mark), ("s", own)]
    head.french[0] = (head.french[0][0], own)
    head.french += [("de", own), *owner.french]
    return head


def add_relative(draw: Draw, head: Nominal) -> None:
    """ "the man who is sleeping", "the letter that he wrote" = "la lettre qu'il a écrite"."""
    assert head.noun is not None, "only nouns take a relative clause"
    if head.noun.classes & {"person", "pet", "wild"}:
        usable = [v for v in verbs(lexicon.INTRANSITIVE) if v.kind in ".i" and v.subjects & head.noun.classes]
        verb = draw.choice(usable)
        tense = "progressive" if verb.progresses and draw.chance(0.6) else "past"
        english, french = piece(draw, "who/qui" if "person" in head.noun.classes else "that/qui")
        clause = say(draw, head, verb, Manner(tense))
        head.english = [*head.english, *english, *clause.auxiliary, *clause.rest]
        head.french = [*head.french, *french, *clause.french]
        return
    usable = [v for v in verbs(lexicon.VERBS) if v.objects & head.noun.classes and v.base in lexicon.RELATIVE]
    if not usable:
        return
    verb = draw.choice(usable)
    draw.combinations.add((verb.base, head.noun.english))
    english, french = piece(draw, "that/que")
    subject = pronoun(draw, draw.choice(["I", "he", "she", "we", "you", "they"]))
    clause = say_with(draw, subject, verb, Manner("past"), Clitic([], head.feminine, head.plural))
    head.english = [*head.english, *english, *clause.english]
    head.french = [*head.french, *french, *clause.whole_french]


def choose_manner(
    draw: Draw, verb: Verb, subject: Nominal, negated: bool, tense: str = "", asked: bool = False
) -> Manner:
    """A tense the verb and the subject allow, a negation if asked for, at times an adverb."""
    tenses = _allowed(verb.kind, subject.person in {IL, ILS})
    if tense not in tenses:
        tense = "present" if tense else draw.choice(tenses)
    negation = "not" if negated else ""
    if negated and tense in {"present", "past", "future"} and not verb.stative and draw.chance(0.35):
        negation = "never"
    elif negated and tense in {"present", "progressive"} and draw.chance(0.25):
        negation = "no longer"
    if tense == "past" and verb.past == "." and negation != "not" and not asked:
        tense = "progressive"
    adverb = ""
    if tense == "present" and not negated and not asked and not verb.stative and draw.chance(0.35):
        adverb = draw.choice(lexicon.FREQUENCY.split())
    return Manner(tense, negation, adverb)


@cache
def _allowed(kind: str, third: bool) -> tuple[str, ...]:
    tenses = _THIRD if third else _OTHERS
    if kind in "sg":
        return tuple(name for name in tenses if name == "present" or (third and name in {"past", "future"}))
    if kind == "i":
        return tuple(name for name in tenses if name not in {"progressive", "was", "must", "want"})
    return tenses


def add_object(
    draw: Draw, subject: Nominal, verb: Verb, manner: Manner, *, asked: bool = False, clitics: bool = True
) -> Clause:
    """The clause with the verb's object, if it takes one: a noun phrase, or a pronoun that French puts before it."""
    if verb.prepositions:
        return _motion(draw, subject, verb, manner)
    if not verb.objects:
        return say(draw, subject, verb, manner, asked=asked)
    if "person" in verb.objects and clitics and draw.chance(0.3):
        avoided = {JE: ("me", "us"), NOUS: ("me", "us"), VOUS: ("you",)}.get(subject.person, ())
        english = draw.choice([word for word in ("her", "them", *OBJECT_PRONOUNS) if word not in avoided])
        french, _, feminine, plural = OBJECT_PRONOUNS[english]
        mark = draw.mark()
        clause = say_with(draw, subject, verb, manner, Clitic([(french, mark)], feminine, plural), asked=asked)
        clause.rest.append((english, mark))
        return clause
    noun = draw.choice(nouns_of(verb.objects))
    draw.combinations.add((verb.base, noun.english))
    clause = say(draw, subject, verb, manner, asked=asked)
    thing = _thing(draw, noun, verb, bool(manner.negation), asked or bool(manner.adverb))
    clause.add(thing.english, thing.french)
    return clause


def _thing(draw: Draw, noun: Noun, verb: Verb, negated: bool, plain: bool) -> Nominal:
    if verb.kind == "g" and noun.classes & {"food", "mass", "drink", "pet", "book", "press"} and draw.chance(0.75):
        return noun_phrase(draw, noun, determiner="kind", plural=1, adjective=0.3)
    if noun.classes & _OWNABLE and not plain and draw.chance(0.1):
        return _owned(draw, noun)
    if not plain and not negated and not noun.classes & {"person", "pet", "wild"} and draw.chance(0.04):
        thing = noun_phrase(draw, noun, determiner="the")
        add_relative(draw, thing)
        return thing
    plural = 0.1 if noun.classes & {"inside", "at", "on"} else 0.35
    return noun_phrase(draw, noun, negated=negated, object_=True, plain=plain, plural=plural)


def _motion(draw: Draw, subject: Nominal, verb: Verb, manner: Manner) -> Clause:
    """ "goes to the market" = "va au marché"; "plays the piano" = "joue du piano"."""
    prepositions, _, classes = verb.prepositions.partition(":")
    clause = say(draw, subject, verb, manner)
    noun = draw.choice(nouns_of(frozenset({classes})))
    if classes == "instrument":
        thing = noun_phrase(draw, noun, determiner="the", adjective=0, plural=0)
        clause.add(thing.english, [("de", thing.english[0][1]), *thing.french])
        return clause
    clause.add(*piece(draw, prepositions))
    place = noun_phrase(
        draw, noun, determiner="the" if draw.chance(0.75) else "", plain=True, plural=0.06, adjective=0.25
    )
    clause.add(place.english, place.french)
    return clause


def says_where(verb: Verb) -> bool:
    return not verb.prepositions and (verb.base in lexicon.LOCATED if verb.objects else verb.kind != "n")


def add_place(
    draw: Draw, clause: Clause, verb: Verb | None, chance: float, classes: frozenset[str] = frozenset()
) -> None:
    """Where it happens, unless the verb says so already."""
    if verb is not None:
        if not says_where(verb):
            return
        chance = 1.0 if verb.kind == "p" else chance * (1 if verb.objects else 2)
    if not draw.chance(chance):
        return
    animal = clause.subject.noun is not None and "person" not in clause.subject.noun.classes
    if verb is not None and verb.kind == "w":
        classes = frozenset({"water"})
    elif not classes:
        resting = verb is not None and verb.base in _RESTING and animal
        classes = (_OUTSIDE | ({"furniture"} if resting else set())) if animal else _EVERYWHERE
    noun = draw.choice(nouns_of(classes))
    options = " ".join(entry for name, entry in lexicon.PLACES.items() if name in noun.classes & classes)
    if verb is not None and verb.kind == "w":
        options = lexicon.PLACES["swimming"]
    clause.add(*piece(draw, draw.choice(options.split())))
    place = noun_phrase(
        draw, noun, determiner="the" if draw.chance(0.75) else "", plain=True, plural=0.06, adjective=0.25
    )
    clause.add(place.english, place.french)


def add_time(draw: Draw, clause: Clause, verb: Verb, manner: Manner) -> None:
    """When it happens, at the end or, with a comma, at the front."""
    if verb.stative or manner.adverb or manner.negation not in {"", "not"} or manner.tense not in lexicon.TIMES:
        return
    if not draw.chance(0.25):
        return
    entry = draw.choice(lexicon.TIMES[manner.tense].split())
    english, french = piece(draw, entry)
    if entry.startswith(("now", "soon")) or draw.chance(0.65):
        clause.add(english, french)
        return
    comma = draw.mark()
    subject = clause.subject
    clause.subject = Nominal(
        [*english, (",", comma), *subject.english], [*french, (",", comma), *subject.french], subject.person
    )
