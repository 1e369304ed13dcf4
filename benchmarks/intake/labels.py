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

HELD_OUT = {
    name: kinds.split()
    for name, kinds in {
        "vcd-DanishWelfare": "x n co co c co",
        "lme4-cake": "x nco c nco n nco",
        "AER-Fertility": "x cb cb cb nco cb cb cb nco",
        "mlmRev-Gcsemv": "x xc x cb n n",
        "forecast-gas": "x n n",
        "Ecdat-DM": "x d n n n",
        "survival-bladder": "x x ncb nco nco nc cb nco",
        "mlmRev-Exam": "x xc n c n co co n cb cb x",
        "carData-Depredations": "x n n nco nco nco",
        "datasets-ChickWeight": "x n nco xc nco",
        "mstate-ebmt3": "x x n cb n cb c co cb cb",
        "openintro-epa2021": "x nco c c xc c nxc no nco c nco nco nco cb c c c c nco cb cb c c c c c c d cb",
        "fpp2-arrivals": "x n n n n",
        "heplots-Bees": "x cb cb nco no no co",
        "openintro-fastfood": "x c x n n n n no n n n nco nco n nco nco nco c",
        "HLMdiag-ahd": "x cb x nco n n",
        "Stat2Data-CAFE": "x x c c n n cb cb",
        "plm-Grunfeld": "x nco nco n n n",
        "Ecdat-Hstarts": "x n n",
        "openintro-mammogram": "x cb cb",
        "Ecdat-Mishkin": "x n n n n n",
        "Ecdat-Bwages": "x n nco nco x",
        "carData-Greene": "x cx c cb cb cb c no",
        "quantreg-barro": "x n n n n n n n n n n n n n n",
        "Stat2Data-Backpack": "x nco n n cb c nco cb cb nco",
        "nlme-Glucose2": "x x ncb nco n",
        "Ecdat-Males": "x x nco nco nco cb c cb cb n c c c",
        "carData-CES11": "x x c nc n cb cb co co cb",
        "openintro-diabetes2": "x c cb",
        "wooldridge-htv": "x n n nco cb cb cb cb nco nco nco cb nco cb cb cb cb cb cb n n n nco n",
        "COUNT-affairs": "x nco cb cb cb cb cb cb cb cb cb cb cb cb cb cb cb cb cb",
        "ggplot2-economics": "x d n n n n n",
        "MASS-GAGurine": "x n n",
        "openintro-mn_police_use_of_force": "x d c cb c cb c c c cb nco c nco c",
        "dslabs-heights": "x cb n",
        "wooldridge-bwght": "x no no no n nco nco nco cb cb nco n n no no",
        "ratdat-complete": "x x nco nco nco nco c cb nco n c c c c",
        "datasets-EuStockMarkets": "x n n n n",
        "vcdExtra-CyclingDeaths": "x d nco",
        "datasets-eurodist": "x n",
    }.items()
}
"""Chosen at random (A to M, none of those above) and labelled before any of them was drafted: no rule was tuned on them
when they were first measured. Whoever tunes on them moves them up."""
