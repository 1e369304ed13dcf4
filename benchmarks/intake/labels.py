"""Kinds of the columns of public tables, chosen by hand: the letters of `messy`, by name or in order.

A short count or a code of whole numbers without a gap may be a line or a list: both keep every value apart.
"""

from __future__ import annotations


def _named(text: str) -> dict[str, str]:
    """`kinds: name, name; kinds: …`."""
    return {name.strip(): kinds.strip() for part in text.split(";") for kinds, _, names in [part.partition(":")]
            for name in names.split(",")}  # fmt: skip


_ADULT = """n: age, fnlwgt, capital-gain, capital-loss, hours-per-week; nco: education-num;
c: workclass, education, marital-status, occupation, relationship, race, native-country; cb: sex, income"""
_CODED = """nc: age, workclass, fnlwgt, education-num, marital-status, occupation, relationship, race, capital-gain,
capital-loss, hours-per-week, native-country; cb: sex, income>50K"""
_COVER = """n: elevation, aspect, slope, hori_distance_hyd, vert_distance, hori_distance_road, hillshade_9am,
hillshade_noon, hillshade_3pm, hori_distance_fire; nc: wild_area, soil_type, cover_type"""
_HEALTH = """x: Name, Doctor, Hospital; n: Age, Billing Amount, Room Number; cb: Gender;
d: Date of Admission, Discharge Date;
c: Blood Type, Medical Condition, Insurance Provider, Admission Type, Medication, Test Results"""
_NURSERY = "co: parents, has_nurs, form, children, housing, finance, social, health, classification"
_NIST = """c: PUMA, MSP, DVET; n: AGEP, PINCP, POVPIP, PWGTP, WGTP; cb: SEX, DEYE, DEAR; nc: HISP, RAC1P, HOUSING_TYPE,
OWN_RENT; cno: NOC, NPF, EDU, PINCP_DECILE, DENSITY; c: INDP, INDP_CAT; cb: DREM, DPHY"""
_MUSHROOM = """class,cap-shape,cap-surface,cap-color,bruises,odor,gill-attachment,gill-spacing,gill-size,gill-color,
stalk-shape,stalk-root,stalk-surface-above-ring,stalk-surface-below-ring,stalk-color-above-ring,stalk-color-below-ring,
veil-type,veil-color,ring-number,ring-type,spore-print-color,population,habitat"""
_VOTES = """Class,handicapped-infants,water-project-cost-sharing,adoption-of-the-budget-resolution,physician-fee-freeze,
el-salvador-aid,religious-groups-in-schools,anti-satellite-test-ban,aid-to-nicaraguan-contras,mx-missile,immigration,
synfuels-corporation-cutback,education-spending,superfund-right-to-sue,crime,duty-free-exports,
export-administration-act-south-africa"""

SHARED = {
    "adult.train.csv": _named(_ADULT),
    "adult_coded.train.csv": _named(_CODED),
    "covertype.csv": _named(_COVER),
    "healthcare.csv": _named(_HEALTH),
    "insurance.csv": _named("n: age, bmi, charges; nco: children; b: smoker; cb: sex; c: region"),
    "mushroom.csv": _named(f"cbo: {_MUSHROOM}"),
    "votes.csv": _named(f"cb: {_VOTES}"),
    "nursery.csv": _named(_NURSERY),
    "nist/texas/tx2019.csv": _named(_NIST),
}

PUBLIC = {
    name: kinds.split()
    for name, kinds in {
        "Stat2Data-CloudSeeding2": "x n cb c n n n n n",
        "vcd-Bundesliga": "x c c nc nc nc n d",
        "openintro-cpu": "x cb x c nc nc n n c nco n n d",
        "mstate-aidssi": "x x n nc c cb",
        "stevedata-commodity_prices": "x d n n n n n n n n n n",
        "openintro-cia_factbook": "x x n n n n n n n n n n",
        "datasets-BJsales": "x n n",
        "MASS-crabs": "x cb cb nx n n n n n",
        "vcdExtra-Cormorants": "x cb nco c co co co cb nco",
        "betareg-CarTask": "x cb no n",
        "ISLR-Carseats": "x n n n n n n co n nco b b",
        "gt-countrypops": "x c c c n n",
        "openintro-climber_drugs": "x nx cb c n b b",
        "mosaicData-BirthsCDC": "x d n co nco nco n nco nco",
        "carData-Chile": "x c nco cb n co nco n c",
        "modeldata-biomass": "x x cb n n n n n n",
        "openintro-ask": "x c cx cb",
        "modeldata-bivariate_train": "x n n cb",
        "DAAG-cricketer": "x cb n n b b b b c",
        "KMsurv-channing": "x x b n n n cb",
        "fpp3-aus_arrivals": "x co c n",
        "datasets-AirPassengers": "x n n",
        "MASS-bacteria": "x b cb cb nco x c",
        "causaldata-avocado": "x d n n",
        "boot-brambles": "x n n nco",
        "stevedata-coffee_imports": "x c b n n",
        "fpp3-aus_accommodation": "x co c n n n",
        "survival-cancer": "x nc n cb n cb nco nco nco n n",
        "boot-coal": "x n",
        "MASS-beav1": "x cbn n n b",
        "fpp2-ausbeer": "x n n",
        "mosaicData-Alcohol": "x c n n",
        "gapminder-country_codes": "x x x xn",
        "openintro-age_at_mar": "x n",
        "modeldata-bivariate_val": "x n n cb",
        "AER-CartelStability": "x no b n co b",
        "bakeoff-bakes_raw": "x nco nco cx x nco x",
        "Ecdat-Bids": "x x n nco cn n n n b b b b b",
        "fpp2-a10": "x n n",
        "mlmRev-Chem97": "x cn xc x nco cb nco n n",
    }.items()
}
