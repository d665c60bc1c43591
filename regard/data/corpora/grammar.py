"""The English-French grammar: draws one sentence, with its French, its alignment and the combinations in it.

One English sentence has one French sentence. Where English says less, a rule decides: "you" is the plural "vous"; "I",
"we" and a "they" without an antecedent are masculine; "it" appears only where its antecedent does, and a pronoun after
"because" is the subject before it.
"""

from itertools import accumulate
from random import Random

from regard.data.corpora import lexicon
from regard.data.corpora.aligned import Draft, Draw, finish, piece
from regard.data.corpora.arguments import (
    PERSON,
    add_object,
    add_place,
    add_relative,
    add_time,
    choose_manner,
    choose_subject,
    says_where,
)
from regard.data.corpora.clauses import (
    Clause,
    Clitic,
    Manner,
    Verb,
    describe,
    plain_verbs,
    pronoun,
    say,
    say_with,
    verbs,
)
from regard.data.corpora.phrases import (
    Adjective,
    Nominal,
    Noun,
    adjectives,
    adjectives_for,
    noun_phrase,
    nouns,
    nouns_of,
)

_PREDICATES = "colour origin state trait before"
_INDIRECT = {"me": "me", "him": "lui", "her": "lui", "us": "nous", "you": "vous", "them": "leur"}


def sentence(random: Random) -> tuple[Draft, frozenset[tuple[str, str]]]:
    """A sentence, and its (adjective, noun) and (verb, object) combinations."""
    draw = Draw(random)
    make = random.choices(_KINDS, cum_weights=_WEIGHTS)[0]
    return make(draw), frozenset(draw.combinations)


def _state(draw: Draw, clause: Clause) -> Draft:
    return finish(draw, clause.english, clause.whole_french)


def _ask(draw: Draw, clause: Clause, first: str = "") -> Draft:
    """Auxiliary first in English; "est-ce que" in French, linked with that auxiliary."""
    asking = draw.mark()
    (text, marks), *more = clause.auxiliary
    english, french = piece(draw, first) if first else ([], [])
    english += [(text, marks | asking), *more, *clause.subject.english, *clause.rest]
    french += [(word, asking) for word in ("est", "-", "ce", "que")] + clause.whole_french
    return finish(draw, english, french, "?")


def _event(draw: Draw, subject: Nominal | None = None, tense: str = "", light: bool = False) -> Clause:
    """Someone does something: the clause most sentences are made of. A `light` one carries less."""
    table = draw.random.choices((lexicon.VERBS, lexicon.INTRANSITIVE, lexicon.MOTION), (6, 2.5, 1.2))[0]
    verb = draw.choice(plain_verbs(table))
    if subject is not None and subject.noun is not None and not subject.noun.classes & verb.subjects:
        verb = draw.choice([verb for verb in verbs(lexicon.INTRANSITIVE) if "pet" in verb.subjects])
    negated = draw.chance(0.28)
    subject = subject or choose_subject(draw, verb.subjects, negated)
    manner = choose_manner(draw, verb, subject, negated, tense)
    clause = add_object(draw, subject, verb, manner)
    add_place(draw, clause, verb, 0.08 if light else 0.25)
    if not light:
        add_time(draw, clause, verb, manner)
    return clause


def _simple(draw: Draw) -> Draft:
    return _state(draw, _event(draw))


def _question(draw: Draw) -> Draft:
    """Yes or no, or where, when, why."""
    verb = draw.choice(plain_verbs(lexicon.VERBS if draw.chance(0.6) else lexicon.INTRANSITIVE))
    subject = choose_subject(draw, verb.subjects, True)
    manner = choose_manner(draw, verb, subject, False, asked=True)
    clause = add_object(draw, subject, verb, manner, asked=True)
    if verb.kind == "p" or draw.chance(0.5):
        add_place(draw, clause, verb, 0.4)
        return _ask(draw, clause)
    words = ["why/pourquoi"] + ["when/quand"] * (not verb.stative) + ["where/où"] * says_where(verb)
    return _ask(draw, clause, draw.choice(words))


def _predicate(draw: Draw, noun: Noun) -> Adjective | None:
    usable = [a for a in adjectives_for(noun, _PREDICATES) if a.english != "new"]
    return draw.choice(usable) if usable else None


def _description(draw: Draw) -> Draft:
    """What something is like, alone or compared with something else."""
    if draw.chance(0.2):
        subject = choose_subject(draw, PERSON, True, pronouns=1.0)
        usable = [a for a in adjectives() if "person" in a.classes and a.kind in {"state", "trait"}]
        adjective = draw.choice(usable)
        return _state(draw, describe(draw, subject, adjective, _being(draw), _degree(draw)))
    while (adjective_or_none := _predicate(draw, noun := draw.choice(nouns()))) is None:
        pass
    adjective = adjective_or_none
    relative = draw.chance(0.15)
    subject = noun_phrase(draw, noun, negated=True, adjective=0.2, determiner="the" if relative else "")
    if any(word == adjective.english for word, _ in subject.english):
        draw.combinations.clear()
        return _description(draw)
    if relative:
        add_relative(draw, subject)
    if adjective.kind != "state" and draw.chance(0.6 if adjective.english in lexicon.COMPARATIVES else 0.2):
        return _state(draw, _comparison(draw, subject, adjective))
    if draw.chance(0.12):
        question = describe(draw, subject, adjective, Manner(draw.choice(["present", "past"])))
        return _ask(draw, question)
    degree = "" if adjective.kind in {"colour", "origin"} or adjective.english in {"good", "bad"} else _degree(draw)
    return _state(draw, describe(draw, subject, adjective, _being(draw), degree))


def _being(draw: Draw) -> Manner:
    tense = draw.choice(["present", "present", "present", "past", "past", "future"])
    return Manner(tense, "not" if draw.chance(0.3) else "")


def _degree(draw: Draw) -> str:
    return draw.choice(["very/très", "too/trop"]) if draw.chance(0.25) else ""


def _comparison(draw: Draw, subject: Nominal, adjective: Adjective) -> Clause:
    degrees = ["as/aussi"]
    if adjective.english in lexicon.COMPARATIVES:
        degrees = ["as/aussi", "er/plus", "er/plus"]
    elif adjective.english in lexicon.WITH_MORE:
        degrees = ["as/aussi", "more/plus", "more/plus"]
    degree = draw.choice(degrees)
    clause = describe(draw, subject, adjective, Manner("present", "not" if draw.chance(0.25) else ""), degree)
    assert subject.noun is not None, "only nouns are compared"
    others = [noun for noun in nouns_of(subject.noun.classes - {"own", "home"}) if noun is not subject.noun]
    others = [noun for noun in others if noun.classes & adjective.classes]
    clause.add(*piece(draw, "as/que" if degree == "as/aussi" else "than/que"))
    other = noun_phrase(draw, draw.choice(others or [subject.noun]), negated=True, adjective=0)
    clause.add(other.english, other.french)
    return clause


def _gift(draw: Draw) -> Draft:
    """ "gives the book to the girl", "gives her the book"."""
    verb = draw.choice([verb for verb in verbs(lexicon.VERBS) if verb.kind == "d"])
    negated = draw.chance(0.2)
    subject = choose_subject(draw, PERSON, negated)
    manner = choose_manner(draw, verb, subject, negated)
    noun = draw.choice(nouns_of(verb.objects))
    draw.combinations.add((verb.base, noun.english))
    if draw.chance(0.45):
        english = draw.choice([word for word in _INDIRECT if word not in _SAME.get(subject.pronoun, ())])
        mark = draw.mark()
        clause = say_with(draw, subject, verb, manner, Clitic([(_INDIRECT[english], mark)]))
        clause.rest.append((english, mark))
        given = noun_phrase(draw, noun, negated=negated, object_=True, adjective=0.35)
        clause.add(given.english, given.french)
        return _state(draw, clause)
    clause = say(draw, subject, verb, manner)
    given = noun_phrase(draw, noun, negated=negated, object_=True, adjective=0.3)
    taker = noun_phrase(draw, draw.choice(nouns_of(PERSON)), negated=True, adjective=0.2)
    clause.add(given.english, given.french)
    clause.add(*piece(draw, "to/à"))
    clause.add(taker.english, taker.french)
    return _state(draw, clause)


_SAME = {"I": ("me", "us"), "we": ("me", "us"), "you": ("you",)}


def _existence(draw: Draw) -> Draft:
    """ "There is a cat under the table"."""
    here = draw.chance(0.5)
    classes = frozenset({"object", "vessel", "food", "mass", "drink"} if here else {"person", "pet", "wild"})
    noun = draw.choice([noun for noun in nouns_of(classes) if "own" not in noun.classes])
    many = not noun.classes & {"mass", "drink"} and draw.chance(0.5)
    first = draw.choice(["some", "quantity"]) if many else "some" if noun.classes & {"mass", "drink"} else "a"
    thing = noun_phrase(draw, noun, determiner=first, plural=float(many), adjective=0.4)
    english, french = piece(draw, ("There are" if many else "There is").replace(" ", "+") + "/Il+y+a")
    clause = Clause(Nominal(english, french), [], [*thing.english], [*thing.french])
    add_place(draw, clause, None, 1.0, frozenset({"furniture"}) if here else frozenset({"inside", "building", "on"}))
    return _state(draw, clause)


def _joined(draw: Draw) -> Draft:
    """Two clauses with "and" or "but", in one tense."""
    tense = draw.choice(["present", "progressive", "past"])
    left, right = _event(draw, tense=tense, light=True), _event(draw, tense=tense, light=True)
    english, french = piece(draw, draw.choice(["and/et", "but/mais"]))
    comma = draw.mark()
    english, french = [(",", comma), *english], [(",", comma), *french]
    whole = [*left.english, *english, *right.english], [*left.whole_french, *french, *right.whole_french]
    return finish(draw, *whole)


def _reason(draw: Draw) -> Draft:
    """ "The women are singing because they are happy": the pronoun agrees with the subject."""
    tense = draw.choice(["present", "progressive", "past"])
    left = _event(draw, tense=tense, light=True)
    again = pronoun(draw, left.subject.pronoun, left.subject)
    kinds = again.noun.classes if again.noun is not None else PERSON
    adjective = draw.choice([a for a in adjectives() if a.kind == "state" and a.classes & kinds])
    right = describe(draw, again, adjective, Manner("past" if tense == "past" else "present", ""), _degree(draw))
    english, french = piece(draw, "because/parce+que")
    whole = [*left.english, *english, *right.english], [*left.whole_french, *french, *right.whole_french]
    return finish(draw, *whole)


def _chain(draw: Draw) -> Draft:
    """ "takes the apple and eats it": the pronoun takes the object's gender."""
    table = {verb.base: verb for verb in verbs(lexicon.VERBS)}
    first = table[draw.choice(lexicon.CHAIN_FIRST.split())]
    noun = draw.choice(nouns_of(first.objects))
    usable = [table[base] for base in lexicon.CHAIN_THEN.split() if table[base].objects & noun.classes]
    if not usable:
        return _chain(draw)
    then = draw.choice(usable)
    subject = choose_subject(draw, PERSON)
    third = subject.pronoun not in _SAME
    manner = Manner(draw.choice(["present", "past", "future"] if third else ["present", "past"]))
    for verb in (first, then):
        draw.combinations.add((verb.base, noun.english))
    clause = say(draw, subject, first, manner)
    thing = noun_phrase(draw, noun, object_=True, adjective=0.3)
    clause.add(thing.english, thing.french)
    clause.add(*piece(draw, "and/et"))
    mark = draw.mark()
    article = "les" if thing.plural else "la" if thing.feminine else "le"
    again = say_with(draw, subject, then, manner, Clitic([(article, mark)], thing.feminine, thing.plural))
    if again.auxiliary:
        (will, marks), (_, more) = clause.auxiliary[0], again.auxiliary[0]
        clause.auxiliary[0] = (will, marks | more)
    clause.add([*again.rest, ("them" if thing.plural else "it", mark)], again.french)
    return _state(draw, clause)


def _opinion(draw: Draw) -> Draft:
    """ "I think that the cat is sleeping"."""
    verb: Verb = draw.choice(verbs(lexicon.OPINIONS))
    clause = say(draw, choose_subject(draw, PERSON, pronouns=0.6), verb)
    clause.add(*piece(draw, "that/que"))
    inner = _event(draw, light=True)
    clause.add(inner.english, inner.whole_french)
    return _state(draw, clause)


def _order(draw: Draw) -> Draft:
    """ "Open the door." """
    verb = draw.choice([verb for verb in verbs(lexicon.VERBS) if verb.kind == "." and verb.base != "listen"])
    manner = Manner("present", "not" if draw.chance(0.35) else "")
    clause = add_object(draw, pronoun(draw, "you"), verb, manner, asked=not manner.negation, clitics=False)
    add_place(draw, clause, verb, 0.2)
    support = clause.auxiliary if manner.negation else []
    return finish(draw, [*support, *clause.rest], clause.french)


_KINDS = [
    _simple, _description, _question, _gift, _existence, _joined, _reason, _chain, _opinion, _order,
]  # fmt: skip
_WEIGHTS = list(accumulate((46, 15, 7, 6, 3, 5, 6, 6, 6, 3)))
