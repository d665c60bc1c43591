"""English and French word forms by rule, and the tables of what escapes the rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from regard.data.corpora.lexicon import ASPIRATED

VOWELS = "aeiouyâàéèêëîïôûœ"
JE, IL, NOUS, VOUS, ILS = range(5)
"""The persons a verb is conjugated in. English "you" is always "vous", so "tu" is never needed."""

ETRE = frozenset({"aller", "venir", "revenir", "arriver", "partir", "rester", "tomber"})
_DOUBLED = frozenset({"run", "swim"})

_IRREGULAR = {
    "être": ("suis est sommes êtes sont", "été", "ser"),
    "avoir": ("ai a avons avez ont", "eu", "aur"),
    "aller": ("vais va allons allez vont", "allé", "ir"),
    "venir": ("viens vient venons venez viennent", "venu", "viendr"),
    "revenir": ("reviens revient revenons revenez reviennent", "revenu", "reviendr"),
    "partir": ("pars part partons partez partent", "parti", "partir"),
    "dormir": ("dors dort dormons dormez dorment", "dormi", "dormir"),
    "courir": ("cours court courons courez courent", "couru", "courr"),
    "sourire": ("souris sourit sourions souriez sourient", "souri", "sourir"),
    "boire": ("bois boit buvons buvez boivent", "bu", "boir"),
    "lire": ("lis lit lisons lisez lisent", "lu", "lir"),
    "écrire": ("écris écrit écrivons écrivez écrivent", "écrit", "écrir"),
    "voir": ("vois voit voyons voyez voient", "vu", "verr"),
    "ouvrir": ("ouvre ouvre ouvrons ouvrez ouvrent", "ouvert", "ouvrir"),
    "prendre": ("prends prend prenons prenez prennent", "pris", "prendr"),
    "connaître": ("connais connaît connaissons connaissez connaissent", "connu", "connaîtr"),
    "suivre": ("suis suit suivons suivez suivent", "suivi", "suivr"),
    "pouvoir": ("peux peut pouvons pouvez peuvent", "pu", "pourr"),
    "devoir": ("dois doit devons devez doivent", "dû", "devr"),
    "vouloir": ("veux veut voulons voulez veulent", "voulu", "voudr"),
    "dire": ("dis dit disons dites disent", "dit", "dir"),
    "croire": ("crois croit croyons croyez croient", "cru", "croir"),
    "savoir": ("sais sait savons savez savent", "su", "saur"),
    "acheter": ("achète achète achetons achetez achètent", "acheté", "achèter"),
    "appeler": ("appelle appelle appelons appelez appellent", "appelé", "appeller"),
    "envoyer": ("envoie envoie envoyons envoyez envoient", "envoyé", "enverr"),
}
"""Present of je, il, nous, vous, ils; past participle; stem of the future."""


@dataclass(frozen=True, slots=True)
class FrenchVerb:
    infinitive: str
    present: Sequence[str]
    imperfect: Sequence[str]
    future: Sequence[str]
    participle: str


@cache
def conjugate(infinitive: str) -> FrenchVerb:
    """All the forms the grammar uses; the imparfait follows from "nous" in the present."""
    if infinitive in _IRREGULAR:
        forms, participle, stem = _IRREGULAR[infinitive]
        present = forms.split()
    else:
        present, participle, stem = _regular(infinitive)
    root = "ét" if infinitive == "être" else present[NOUS][:-3]
    thin = root[:-1] if root.endswith("ge") else root
    imperfect = [root + "ais", root + "ait", thin + "ions", thin + "iez", root + "aient"]
    future = [stem + ending for ending in ("ai", "a", "ons", "ez", "ont")]
    return FrenchVerb(infinitive, present, imperfect, future, participle)


def _regular(infinitive: str) -> tuple[list[str], str, str]:
    root, group = infinitive[:-2], infinitive[-2:]
    if group == "er":
        soft = root + "e" if root.endswith("g") else root
        return [root + "e", root + "e", soft + "ons", root + "ez", root + "ent"], root + "é", infinitive
    if group == "ir":
        present = [root + ending for ending in ("is", "it", "issons", "issez", "issent")]
        return present, root + "i", infinitive
    present = [root + ending for ending in ("s", "", "ons", "ez", "ent")]
    return present, root + "u", infinitive[:-1]


def agree(masculine: str, feminine: str, is_feminine: bool, is_plural: bool) -> str:
    """The form of an adjective or a participle."""
    if is_feminine:
        return feminine + "s" if is_plural else feminine
    return french_plural(masculine) if is_plural else masculine


def french_plural(word: str) -> str:
    if word[-1] in "sxz":
        return word
    return word + ("x" if word.endswith("eau") else "s")


def elides(word: str) -> bool:
    """Whether "le" becomes "l'" before this word."""
    first = word[0].lower()
    return first in VOWELS or (first == "h" and word not in ASPIRATED)


def english_s(word: str) -> str:
    """The plural of a noun, and just as well the third person of a verb."""
    if word == "have":
        return "has"
    if word.endswith(("s", "sh", "ch", "x")) or word in {"go", "tomato"}:
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def english_ing(verb: str) -> str:
    if verb in _DOUBLED:
        return verb + verb[-1] + "ing"
    return verb[:-1] + "ing" if verb.endswith("e") and not verb.endswith("ee") else verb + "ing"


def article(following: str) -> str:
    """The "a" or "an" that goes before a word; "university" begins with a consonant sound."""
    return "an" if following[0].lower() in "aeiou" and not following.startswith("uni") else "a"
