"""What names of columns and wellknown words tell: identifiers, codes, free text, and scales in their order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

MOST_SLIPS = 5

PERSON = re.compile(
    r"(^|[_\W])(subject|subj|patient|client|customer|person|respondent|participant|user|member|pupil|student|employee|"
    r"pid|kunde|kundin|patientin|mitglied|teilnehmer|teilnehmerin|probandin|proband|versicherter|mandant|klient|klientin|"
    r"cliente|paciente)([_\W]*(id|no|nr|num|number|nummer|key|code))?$"
    # With a word for a number behind them only: "Kunden" alone may count them.
    r"|(^|[_\W])(kunden|kd|patienten|pat|mitglieds|teilnehmer|probanden|versicherten|mandanten|klienten|personen|personal|"
    r"matrikel|fall|akten)[_\W]*(id|nr|no|nummer|kennung|zeichen)$",
    re.I,
)
BARE = re.compile(r"^(id|uuid|guid|pid)$", re.I)
NUMBERED = re.compile(r"[a-z_. -](no|nr|num|number|nummer|id)$", re.I)
IDENTIFIER = re.compile(
    r"(^|[_\W])(id|ids|uuid|guid|key|ssn|iban|bic|imei|token|hash|passport|rownames?|row|index|unnamed: ?\d+)$"
    r"|^(id|uuid|key)[_\W]|[a-z](Id|ID|Uuid|UUID)$|(^|[_\W])(account|order|invoice|policy|case|record|serial)[_\W]?"
    r"(no|nr|num|number)$|^(case|obs|observation|rec|record)([_\W]?(id|no|nr|num))?$",
)
CONTACT = re.compile(
    r"(^|[_\W])(phone|telephone|tel|telefon|mobile|handy|fax|e?-?mail|iban|url|website|address|adresse|street|strasse)"
    r"([_\W]?(no|nr|number|nummer))?$",
    re.I,
)
NAMES = re.compile(
    r"^((first|last|full|given|family|sur|middle|maiden)[_\W]?)?name$"
    r"|^(vor|nach|familien|geburts)name$|^(nom|prenom|prénom|arzt|ärztin|ansprechpartner(in)?|doctor)$"
    r"|^(patient|customer|client|doctor|person|kunden?|patienten|mitglieds?|versicherten?)[_\W]?name$",
    re.I,
)
FULL_NAME = re.compile(r"[^\W\d_][\w.'’-]*(,? [^\W\d_][\w.'’-]*){1,3}")
"""Two to four words, as the names of people have; whether each begins with a capital is asked beside it."""
BIRTH = re.compile(r"birth|born|geburt|gebdat|geboren|naissance|nacimiento|(^|[_\W])dob$", re.I)
CODE = re.compile(
    r"(^|[_\W])(code|codes|cd|zip|zipcode|plz|postal|postcode|postleitzahl|mcc|icd\d*|naics|isco\d*|isic|fips|soc|puma|"
    r"district|kreis|region|county|state|type|class|cat|category|group|status|kind|dept|branch|sector|gkz|ags|"
    r"site|ward|plot|block)([_\W]?(id|no|nr|code|cat))?$",
    re.I,
)
PLACE = re.compile(
    r"(^|[_\W])(school|schule|hospital|krankenhaus|clinic|klinik|firm|firma|store|filiale|village|municipality|gemeinde)"
    r"([_\W]?(id|no|nr|code))?$",
    re.I,
)
FREE_TEXT = re.compile(
    r"(^|[_\W])(comments?|text|notes?|remarks?|description|feedback|message|bemerkung(en)?|kommentare?|anmerkung(en)?|"
    r"freitext|review|abstract|diary|reason|begründung|commentaire)$",
    re.I,
)
TIME = re.compile(r"(^|[_\W])(time|t|year|yr|jahr|month|week|day|period|date|age|quarter|hour|zeit|tag)$", re.I)
AGE = re.compile(r"(^|[_\W])(age|alter|âge|edad|agep)(_?(years|yrs))?$", re.I)
SHARE = re.compile(r"(^|[_\W])(pct|percent|percentage|prozent|anteil)$|%", re.I)

# What the values themselves look like.
PATTERNS = {
    "UUIDs": re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I),
    "mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.I),
    "account numbers (IBAN)": re.compile(r"[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){3,7} ?[A-Z0-9]{0,3}"),
    "web addresses": re.compile(r"(https?://|www\.)\S+", re.I),
    "network addresses": re.compile(r"(\d{1,3}\.){3}\d{1,3}"),
    "phone numbers": re.compile(
        r"\+\d[\d ()/.-]{6,18}|00\d[\d ()/.-]{7,18}|\(?0\d{1,5}\)?[ /-]\d[\d -]{3,12}|\(\d{3}\) ?\d{3}[-. ]\d{4}"
        r"|\d{3}[-. ]\d{3}[-. ]\d{4}"
    ),
    "digests": re.compile(r"(?=.*[a-f])(?=.*\d)[0-9a-f]{16,128}"),
}


def _scale(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("<"))


SCALES = tuple(
    _scale(text)
    for text in (
        "strongly disagree < disagree < somewhat disagree < neither agree nor disagree < neutral < undecided < "
        "somewhat agree < agree < strongly agree",
        "stimme überhaupt nicht zu < stimme gar nicht zu < stimme nicht zu < stimme eher nicht zu < teils/teils < "
        "teils teils < neutral < weder noch < stimme eher zu < stimme zu < stimme voll zu < stimme voll und ganz zu",
        "trifft überhaupt nicht zu < trifft gar nicht zu < trifft nicht zu < trifft eher nicht zu < teils/teils < "
        "trifft teilweise zu < trifft eher zu < trifft zu < trifft voll zu < trifft voll und ganz zu",
        "pas du tout d'accord < pas d'accord < plutôt pas d'accord < ni d'accord ni pas d'accord < neutre < "
        "plutôt d'accord < d'accord < tout à fait d'accord",
        "totalmente en desacuerdo < en desacuerdo < neutral < de acuerdo < totalmente de acuerdo",
        "very dissatisfied < dissatisfied < somewhat dissatisfied < neutral < somewhat satisfied < satisfied < "
        "very satisfied",
        "sehr unzufrieden < unzufrieden < eher unzufrieden < neutral < eher zufrieden < zufrieden < sehr zufrieden",
        "never < almost never < rarely < seldom < occasionally < sometimes < often < usually < very often < "
        "almost always < always",
        "nie < fast nie < selten < manchmal < gelegentlich < häufig < oft < sehr oft < fast immer < immer",
        "jamais < rarement < parfois < souvent < très souvent < toujours",
        "very bad < bad < very poor < poor < below average < fair < average < acceptable < above average < good < "
        "very good < excellent < outstanding",
        "sehr schlecht < schlecht < mangelhaft < ausreichend < mittel < mittelmäßig < befriedigend < gut < sehr gut",
        "none < very low < low < lower < middle < medium < moderate < mid < high < higher < very high",
        "lowest < low < medium < high < highest",
        "keine < sehr niedrig < niedrig < gering < mittel < hoch < sehr hoch",
        "faible < bas < moyen < moyenne < haut < élevé < très élevé",
        "none < minimal < mild < slight < moderate < severe < very severe < extreme",
        "not at all < a little < slightly < somewhat < moderately < quite a bit < very < very much < extremely",
        "very unlikely < unlikely < neutral < likely < very likely",
        "not important < somewhat important < important < very important",
        "nonprom < slightly_prom < less_proper < proper < improper < critical < very_crit",
        "small < medium < large", "klein < mittel < groß", "petit < moyen < grand",
        "xxs < xs < s < m < l < xl < xxl < xxxl",
        "first < second < third < fourth < fifth < sixth", "1st < 2nd < 3rd < 4th < 5th < 6th",
        "freshman < sophomore < junior < senior", "infant < child < teen < adult < elderly",
        "i < ii < iii < iv < v < vi < vii < viii < ix < x",
        "january < february < march < april < may < june < july < august < september < october < november < december",
        "jan < feb < mar < apr < may < jun < jul < aug < sep < oct < nov < dec",
        "januar < februar < märz < april < mai < juni < juli < august < september < oktober < november < dezember",
        "janvier < février < mars < avril < mai < juin < juillet < août < septembre < octobre < novembre < décembre",
        "monday < tuesday < wednesday < thursday < friday < saturday < sunday",
        "mon < tue < wed < thu < fri < sat < sun", "mo < di < mi < do < fr < sa < so",
        "montag < dienstag < mittwoch < donnerstag < freitag < samstag < sonntag",
        "lundi < mardi < mercredi < jeudi < vendredi < samedi < dimanche",
    )
)  # fmt: skip
_MONTHLY = {"jan", "mon", "mo"}
# "<5", "5-9", "85+", "1 - strongly disagree", "18 to 24", "$10,000 - $20,000", "(0,10]".
_GROUP = re.compile(
    r"(?P<below><|≤|under |unter |below |less than |up to |bis )?\s*[\[(]?[$€£]?(?P<low>-?\d[\d,.]*)\s*[kK]?"
    r"(?P<rest>(\s*(-|–|to|bis|,|:|\.|und|and|\+|or |years|jahre|%|mg|plus|over|more|mehr|lbs|k|K|\$|€|<|>|=)\s*.*)?)",
    re.I,
)
_ABOVE = re.compile(r"(>|≥|over |über |above |more than )\s*=?\s*[$€£]?(?P<low>-?\d[\d,.]*).*", re.I)


def ordered(values: Collection[str]) -> tuple[str, ...] | None:
    """The values from lowest to highest, where they are words of one scale or groups of numbers; else None."""
    if len(values) < 3:
        return None
    said = {re.sub(r"\s+", " ", v.lower()): v for v in values}
    if len(said) == len(values):
        for scale in SCALES:
            if said.keys() <= set(scale):
                return tuple(said[word] for word in scale if word in said)
    return _by_number(values)


def _by_number(values: Collection[str]) -> tuple[str, ...] | None:
    if all(re.fullmatch(r"-?[\d.]+", v) for v in values):
        return None  # plain numbers, which may as well be codes
    places = {}
    for value in values:
        above = _ABOVE.fullmatch(value)
        group = above or _GROUP.fullmatch(value)
        if group is None:
            return None
        try:
            number = float(group["low"].rstrip(",.").replace(",", ""))
        except ValueError:
            return None
        below = not above and bool(group["below"])
        places[value] = (number, -1 if below else 1 if above else 0)
    if len(set(places.values())) < len(values):
        return None
    return tuple(sorted(values, key=lambda v: places[v]))


def are_full_names(texts: Collection[str]) -> bool:
    """Whether nearly all of these texts are two to four words with capitals, as "Ada Lovelace" is."""
    found = [FULL_NAME.fullmatch(t) is not None and all(w[0].isupper() for w in t.split()) for t in texts]
    return sum(found) > 0.9 * len(found)


def slips(counts: Mapping[str, int], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Labels that differ from a far more frequent one in capitals or spaces alone, each with that one."""
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault("".join(label.casefold().split()), []).append(label)
    found = []
    for group in alike.values():
        meant = max(group, key=lambda label: counts.get(label, 0))
        found += [(label, meant) for label in group if 10 * counts.get(label, 0) < counts.get(meant, 0)]
    return found[:MOST_SLIPS]


def look_of(texts: Collection[str]) -> str | None:
    """What nearly all of these texts look like, where that tells people apart."""
    for what, pattern in PATTERNS.items():
        if sum(bool(pattern.fullmatch(t)) for t in texts) > 0.9 * len(texts):
            return what
    return None
