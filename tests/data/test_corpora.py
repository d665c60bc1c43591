"""What the built-in corpora promise: nothing random between runs, nothing shared between splits, correct French."""

import re
import subprocess
import sys
from collections import Counter
from datetime import date
from itertools import islice, pairwise
from random import Random

import pytest

from regard.data.corpora import CORPORA, corpus, lexicon
from regard.data.corpora.aligned import Draw, finish, piece
from regard.data.corpora.clauses import Clitic, Manner, describe, pronoun, say, say_with, verbs
from regard.data.corpora.dates import FORMATS, write
from regard.data.corpora.english_french import DEMO, english_french, held_out
from regard.data.corpora.grammar import sentence
from regard.data.corpora.phrases import Nominal, adjectives, nouns, phrase
from regard.data.pairs import Pair
from regard.data.words import split_words
from regard.errors import UserError

NOUNS = {noun.english: noun for noun in nouns()}
ADJECTIVES = {adjective.english: adjective for adjective in adjectives()}
VERBS = {f"{v.base} {v.particle}".strip(): v for v in verbs(lexicon.VERBS)}
VERBS |= {v.base: v for v in (*verbs(lexicon.MOTION)[:2], *verbs(lexicon.INTRANSITIVE)) if v.base not in VERBS}


@pytest.fixture(scope="module")
def drawn() -> dict[tuple[str, str], list[Pair]]:
    return {(name, split): list(make()) for name, made in CORPORA.items() for split, make in made.splits.items()}


def links_in_words(pair: Pair) -> set[tuple[str, str]]:
    source, target = split_words(pair.source), split_words(pair.target)
    return {(source[i], target[j]) for i, j in pair.alignment or ()}


# --- every corpus ----------------------------------------------------------------------------------------------------


def test_an_unknown_corpus_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no built-in corpus 'date'; did you mean 'dates'\? \(known: copy, dates"):
        corpus("date")


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_the_same_every_time_and_in_every_process(name: str) -> None:
    program = (
        "from itertools import islice, pairwise; from regard.data.corpora import corpus\n"
        f"print([list(islice(make(), 30)) for make in corpus({name!r}).splits.values()])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in ("1", "2")
    ]
    here = str([list(islice(make(), 30)) for make in corpus(name).splits.values()])
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.decode().strip() == here


def test_importing_the_corpora_does_not_import_torch() -> None:
    program = "import sys, regard.data.corpora; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_splits_have_their_sizes_and_share_no_source(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    sizes = {
        "english-french": {"train": 50_000, "valid": 500, "test": 1_000, "unseen": 1_000},
        "dates": {"train": 20_000, "valid": 500, "test": 1_000},
        "reverse": {"train": 10_000, "valid": 300, "test": 500},
        "copy": {"train": 10_000, "valid": 300, "test": 500},
    }
    assert {name: {split: len(drawn[name, split]) for split in made.splits} for name, made in CORPORA.items()} == sizes
    for name, made in CORPORA.items():
        sources = [pair.source for split in made.splits for pair in drawn[name, split]]
        assert len(sources) == len(set(sources)), f"{name} repeats a source"


@pytest.mark.parametrize("name", CORPORA)
def test_alignments_stay_within_the_words_of_each_side(name: str, drawn: dict[tuple[str, str], list[Pair]]) -> None:
    for split in CORPORA[name].splits:
        for pair in drawn[name, split][:2_000]:
            source, target = split_words(pair.source), split_words(pair.target)
            assert pair.alignment
            assert len(set(pair.alignment)) == len(pair.alignment)
            assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in pair.alignment), pair


def test_another_seed_is_another_corpus() -> None:
    assert list(english_french("valid", 20, seed=1)) != list(english_french("valid", 20, seed=2))


# --- english-french: the splits --------------------------------------------------------------------------------------


def test_the_demonstration_is_in_the_grammar_and_in_no_split(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    draw = Draw(Random(0))
    clause = say(draw, phrase(draw, NOUNS["cat"], "the", [ADJECTIVES["white"]]), VERBS["sleep"], Manner("progressive"))
    pair = finish(draw, clause.english, clause.whole_french).pair()
    assert (pair.source, pair.target) == (DEMO, "Le chat blanc dort.")
    assert pair.alignment == ((0, 0), (1, 2), (2, 1), (3, 3), (4, 3), (5, 4))
    assert not any(held_out(*combination) for combination in draw.combinations)
    assert all(
        pair.source != DEMO for split in CORPORA["english-french"].splits for pair in drawn["english-french", split]
    )


def combinations_in(text: str, pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    words = split_words(text)
    return {pair for pair in pairwise(words) if pair in pairs}


def test_held_out_combinations_are_only_in_unseen_and_their_words_are_common(
    drawn: dict[tuple[str, str], list[Pair]],
) -> None:
    kept = {
        (adjective.english, form): (adjective.english, noun.english)
        for adjective in adjectives()
        for noun in nouns()
        if adjective.classes & noun.classes and held_out(adjective.english, noun.english)
        for form in (noun.english, noun.english_plural)
    }
    known = [pair.source for split in ("train", "valid", "test") for pair in drawn["english-french", split]]
    assert not any(combinations_in(text, set(kept)) for text in known)
    found = Counter(
        pair for new in drawn["english-french", "unseen"] for pair in combinations_in(new.source, set(kept))
    )
    assert len(found) > 100

    objects = "|".join(
        f"{re.escape(form)} (?:the|a|an|my|his|her) (?:{noun.english}|{noun.english_plural})"
        for verb in verbs(lexicon.VERBS)
        for noun in nouns()
        if verb.objects & noun.classes and held_out(verb.base, noun.english)
        for form in {f"{verb.base} {verb.particle}".strip(), f"{verb.past} {verb.particle}".strip()}
    )
    pattern = re.compile(rf"\b(?:{objects})\b(?!')")
    assert not any(pattern.search(text) for text in known)
    assert sum(bool(pattern.search(new.source)) for new in drawn["english-french", "unseen"]) > 50

    counts = Counter(word for pair in drawn["english-french", "train"] for word in split_words(pair.source))
    for noun in nouns():
        assert counts[noun.english] + counts[noun.english_plural] >= 20, noun
    for adjective in adjectives():
        assert counts[adjective.english] >= 20, adjective
    for verb in verbs(lexicon.VERBS):
        assert counts[verb.base] + counts[verb.past] >= 20, verb


def test_every_sentence_of_unseen_holds_a_held_out_combination(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    again = Random("0 unseen")  # the same draws, with the combinations that the pairs do not carry
    contained = {draft.source: combinations for draft, combinations in (sentence(again) for _ in range(20_000))}
    for pair in drawn["english-french", "unseen"]:
        assert any(held_out(*combination) for combination in contained[pair.source]), pair.source


def test_one_english_sentence_has_one_french_sentence() -> None:
    random, french = Random(5), dict[str, str]()
    for _ in range(30_000):
        pair = sentence(random)[0].pair()
        assert french.setdefault(pair.source, pair.target) == pair.target


def test_the_vocabulary_is_wide_and_mostly_frequent(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    train = drawn["english-french", "train"]
    for side in ("source", "target"):
        counts = Counter(word.lower() for pair in train for word in split_words(getattr(pair, side)))
        assert len(counts) > 300
        assert sum(count >= 5 for count in counts.values()) > 0.95 * len(counts)
    lengths = [len(pair.source.split()) for pair in train]
    assert min(lengths) == 3
    assert max(lengths) == 12


def test_every_final_mark_is_linked_and_every_french_word_has_a_source(
    drawn: dict[tuple[str, str], list[Pair]],
) -> None:
    for pair in drawn["english-french", "train"][:3_000]:
        source, target = split_words(pair.source), split_words(pair.target)
        assert (len(source) - 1, len(target) - 1) in (pair.alignment or ())
        assert {j for _, j in pair.alignment or ()} == set(range(len(target))), pair
        assert {i for i, _ in pair.alignment or ()} == set(range(len(source))), pair


def test_adjectives_that_follow_the_french_noun_give_crossing_links(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    after = {adjective.english for adjective in adjectives() if not adjective.precedes}
    forms = {form for noun in nouns() for form in (noun.english, noun.english_plural)}
    checked = 0
    for pair in drawn["english-french", "train"][:5_000]:
        words = split_words(pair.source)
        for i, (word, following) in enumerate(pairwise(words)):
            if word in after and following in forms:
                (adjective,) = (j for k, j in pair.alignment or () if k == i)
                noun = max(j for k, j in pair.alignment or () if k == i + 1)
                assert adjective > noun, pair
                checked += 1
    assert checked > 1_000


def test_no_french_sentence_misses_an_elision_or_a_contraction(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    wrong = re.compile(r"\b(?:le|la|je|ne|de|que|me|ce) [aeiouyâàéèêîôûœ]|\b(?:de|à) les? | '|' |  ", re.I)
    for split in CORPORA["english-french"].splits:
        for pair in drawn["english-french", split]:
            assert not wrong.search(pair.target), pair.target


# --- english-french: the grammar, checked by hand --------------------------------------------------------------------


def noun(draw: Draw, text: str, many: bool = False, negated: bool = False) -> Nominal:
    first, *modifiers, last = text.split()
    return phrase(draw, NOUNS[last], first, [ADJECTIVES[word] for word in modifiers], many=many, negated=negated)


@pytest.mark.parametrize(
    ("text", "many", "english", "french"),
    [
        ("the man", False, "The man.", "L'homme."),
        ("the old man", False, "The old man.", "Le vieil homme."),
        ("this man", False, "This man.", "Cet homme."),
        ("this owl", False, "This owl.", "Ce hibou."),
        ("the old owl", False, "The old owl.", "Le vieux hibou."),
        ("a beautiful bird", False, "A beautiful bird.", "Un bel oiseau."),
        ("a new computer", False, "A new computer.", "Un nouvel ordinateur."),
        ("this old dress", False, "This old dress.", "Cette vieille robe."),
        ("my school", False, "My school.", "Mon école."),
        ("his new school", False, "His new school.", "Sa nouvelle école."),
        ("a small white cow", False, "A small white cow.", "Une petite vache blanche."),
        ("the horse", True, "The horses.", "Les chevaux."),
        ("the beautiful boat", True, "The beautiful boats.", "Les beaux bateaux."),
        ("some small cat", True, "Some small cats.", "De petits chats."),
        ("some white cat", True, "Some white cats.", "Des chats blancs."),
        ("some bread", False, "Some bread.", "Du pain."),
        ("some cold water", False, "Some cold water.", "De l'eau froide."),
        ("some meat", False, "Some meat.", "De la viande."),
        ("this egg", True, "These eggs.", "Ces œufs."),
        ("a Italian egg", False, "An Italian egg.", "Un œuf italien."),
        ("a university", False, "A university.", "Une université."),
        ("kind bread", False, "Bread.", "Le pain."),
    ],
)
def test_noun_phrases(text: str, many: bool, english: str, french: str) -> None:
    draw = Draw(Random(0))
    made = noun(draw, text, many)
    pair = finish(draw, made.english, made.french).pair()
    assert (pair.source, pair.target) == (english, french)


NOT, OFTEN = Manner("present", "not"), Manner("present", "", "often/souvent")


@pytest.mark.parametrize(
    ("subject", "verb", "manner", "object_", "english", "french"),
    [
        ("the white cat", "sleep", NOT, "", "The white cat does not sleep.", "Le chat blanc ne dort pas."),
        ("I", "like", Manner(), "kind cheese", "I like cheese.", "J'aime le fromage."),
        ("I", "like", NOT, "kind cheese", "I do not like cheese.", "Je n'aime pas le fromage."),
        ("we", "eat", Manner("progressive"), "a apple", "We are eating an apple.", "Nous mangeons une pomme."),
        ("she", "eat", Manner("past", "not"), "a apple", "She did not eat an apple.", "Elle n'a pas mangé de pomme."),
        ("he", "open", Manner("past", "never"), "the bag", "He never opened the bag.", "Il n'a jamais ouvert le sac."),
        ("they", "sing", Manner("present", "no longer"), "", "They no longer sing.", "Ils ne chantent plus."),
        ("she", "go", Manner("past"), "", "She went.", "Elle est allée."),
        ("he", "leave", Manner("future"), "the castle", "He will leave the castle.", "Il quittera le château."),
        ("you", "buy", Manner("going"), "the car", "You are going to buy the car.", "Vous allez acheter la voiture."),
        ("the girl", "swim", Manner("was"), "", "The girl was swimming.", "La fille nageait."),
        ("he", "swim", Manner("can", "not"), "", "He cannot swim.", "Il ne peut pas nager."),
        ("she", "drink", OFTEN, "some milk", "She often drinks some milk.", "Elle boit souvent du lait."),
        ("he", "know", Manner("past"), "my sister", "He knew my sister.", "Il connaissait ma sœur."),
        ("I", "call", Manner(), "a friend", "I call a friend.", "J'appelle un ami."),
    ],
)  # fmt: skip
def test_clauses(subject: str, verb: str, manner: Manner, object_: str, english: str, french: str) -> None:
    draw = Draw(Random(0))
    who = noun(draw, subject) if " " in subject else pronoun(draw, subject)
    clause = say(draw, who, VERBS[verb], manner)
    if object_:
        what = noun(draw, object_, negated=bool(manner.negation))
        clause.add(what.english, what.french)
    pair = finish(draw, clause.english, clause.whole_french).pair()
    assert (pair.source, pair.target) == (english, french)


@pytest.mark.parametrize(
    ("verb", "manner", "words", "feminine", "plural", "english", "french"),
    [
        ("see", Manner(), "him le", False, False, "I see him.", "Je le vois."),
        ("see", Manner("past"), "her la", True, False, "I saw her.", "Je l'ai vue."),
        ("see", Manner("past", "not"), "them les", False, True, "I did not see them.", "Je ne les ai pas vus."),
        ("look for", Manner("want"), "her la", True, False, "I want to look for her.", "Je veux la chercher."),
        ("help", Manner("must", "not"), "him le", False, False, "I must not help him.", "Je ne dois pas l'aider."),
    ],
)
def test_object_pronouns_go_before_the_french_verb(
    verb: str, manner: Manner, words: str, feminine: bool, plural: bool, english: str, french: str
) -> None:
    draw = Draw(Random(0))
    mark, (left, right) = draw.mark(), words.split()
    clause = say_with(draw, pronoun(draw, "I"), VERBS[verb], manner, Clitic([(right, mark)], feminine, plural))
    clause.rest.append((left, mark))
    pair = finish(draw, clause.english, clause.whole_french).pair()
    assert (pair.source, pair.target) == (english, french)


@pytest.mark.parametrize(
    ("prepositions", "place", "many", "french"),
    [
        ("to/à", "the market", False, "Au marché."),
        ("to/à", "the school", False, "À l'école."),
        ("to/à", "the museum", True, "Aux musées."),
        ("from/de", "the village", False, "Du village."),
        ("from/de", "the hospital", False, "De l'hôpital."),
        ("near/près+de", "the lake", True, "Près des lacs."),
        ("next+to/à+côté+de", "a old church", False, "À côté d'une vieille église."),
    ],
)
def test_prepositions_contract_with_the_article(prepositions: str, place: str, many: bool, french: str) -> None:
    draw = Draw(Random(0))
    english, words = piece(draw, prepositions)
    made = noun(draw, place, many)
    assert finish(draw, english + made.english, words + made.french).pair().target == french


def test_alignment_of_negation_contraction_and_auxiliaries() -> None:
    draw = Draw(Random(0))
    clause = say(draw, pronoun(draw, "she"), VERBS["come"], Manner("past", "not"))
    clause.add(*piece(draw, "from/de"))
    place = noun(draw, "the village")
    clause.add(place.english, place.french)
    pair = finish(draw, clause.english, clause.whole_french).pair()
    assert (pair.source, pair.target) == ("She did not come from the village.", "Elle n'est pas venue du village.")
    assert links_in_words(pair) == {
        ("She", "Elle"), ("not", "n'"), ("not", "pas"), ("did", "est"), ("come", "venue"), ("from", "du"),
        ("the", "du"), ("village", "village"), (".", "."),
    }  # fmt: skip


def test_a_pronoun_agrees_with_what_it_refers_to() -> None:
    draw = Draw(Random(0))
    women = noun(draw, "the woman", many=True)
    clause = describe(draw, pronoun(draw, "they", women), ADJECTIVES["happy"], Manner("past"), "very/très")
    assert finish(draw, clause.english, clause.whole_french).pair().target == "Elles étaient très heureuses."


# --- dates, reverse, copy --------------------------------------------------------------------------------------------


def test_dates_are_written_and_aligned() -> None:
    day = date(2024, 3, 5)
    texts = {write(day, pattern).source for pattern in FORMATS}
    assert len(texts) == len(FORMATS)
    assert {"March 5, 2024", "Tuesday, 5 March 2024", "05/03/2024", "5.3.2024", "Mar 5 '24", "2024/03/05"} <= texts
    for pattern in FORMATS:
        pair = write(date(2021, 12, 31), pattern)
        assert pair.target == "2021-12-31"
        linked = links_in_words(pair)
        assert {target for _, target in linked} == {"2021", "12", "31"}
        for source, target in linked:
            assert source in {
                "2021": {"2021", "21"}, "12": {"12", "December", "Dec"}, "31": {"31", "31st", "thirty", "first"},
            }[target]  # fmt: skip


def test_a_written_date_has_one_meaning(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    for split in CORPORA["dates"].splits:
        for pair in drawn["dates", split]:
            assert 1900 <= date.fromisoformat(pair.target).year <= 2099
            if found := re.fullmatch(r"(\d+)[/.-](\d+)[/.-](\d{4})", pair.source):
                day, month, year = map(int, found.groups())
                assert date(year, month, day).isoformat() == pair.target


def test_reverse_and_copy_link_each_letter_to_itself(drawn: dict[tuple[str, str], list[Pair]]) -> None:
    for name, step in (("reverse", -1), ("copy", 1)):
        for pair in drawn[name, "test"]:
            letters = pair.source.split()
            assert 3 <= len(letters) <= 12
            assert pair.target.split() == letters[::step]
            positions = range(len(letters))[::step]
            assert pair.alignment == tuple(zip(range(len(letters)), positions, strict=True))
