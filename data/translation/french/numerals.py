"""Numbers, ordinals, dates and times of day in English and French.

Does: spell numbers from 1 to 1,999 in both languages (in French with the traditional hyphens: 'vingt et un', 'soixante et
onze', 'quatre-vingts', 'quatre-vingt-un', 'deux cents'), and write dates and times as phrases. Does not: read any.
"""

from __future__ import annotations

from french.words import Phrase, en, fixed, fr, key

__all__ = ["DAYS", "MONTHS", "date", "english_number", "french_number", "french_ordinal", "number", "ordinal", "time"]

UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
UNITÉS = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
).split()
DIZAINES = "- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt".split()
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
DAYS = dict(
    zip(
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
        "lundi mardi mercredi jeudi vendredi samedi dimanche".split(),
    )
)
MONTHS = dict(
    zip(
        "January February March April May June July August September October November December".split(),
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
    )
)


def english_number(n: int) -> str:
    """english_number(281) -> 'two hundred and eighty-one'."""
    if n < 20:
        return UNITS[n]
    if n < 100:
        return TENS[n // 10] + (f"-{UNITS[n % 10]}" if n % 10 else "")
    size, word = (100, "hundred") if n < 1000 else (1000, "thousand")
    rest = n % size
    joint = " and " if rest < 100 else " "
    return f"{english_number(n // size)} {word}" + (joint + english_number(rest) if rest else "")


def french_number(n: int, feminine: bool = False) -> str:
    """french_number(281) -> 'deux cent quatre-vingt-un'; before a feminine noun 'une' for 'un'."""
    if n < 20:
        return "une" if n == 1 and feminine else UNITÉS[n]
    if n < 100:
        tens, rest = divmod(n, 10)
        if tens in (7, 9):
            rest += 10
        if n == 80:
            return "quatre-vingts"
        if not rest:
            return DIZAINES[tens]
        last = french_number(rest, feminine)
        return f"{DIZAINES[tens]} et {last}" if rest in (1, 11) and tens < 8 else f"{DIZAINES[tens]}-{last}"
    if n < 1000:
        hundreds, rest = divmod(n, 100)
        if not rest:
            return "cent" if hundreds == 1 else f"{UNITÉS[hundreds]} cents"
        return ("cent " if hundreds == 1 else f"{UNITÉS[hundreds]} cent ") + french_number(rest, feminine)
    return "mille" + (f" {french_number(n % 1000, feminine)}" if n % 1000 else "")


def english_ordinal(n: int) -> str:
    head, dash, last = english_number(n).rpartition("-")
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return head + dash + ORDINALS.get(last, regular)


def french_ordinal(n: int, feminine: bool = False) -> str:
    """french_ordinal(21) -> 'vingt et unième'; french_ordinal(1, feminine=True) -> 'première'."""
    if n == 1:
        return "première" if feminine else "premier"
    text = french_number(n)
    for ending, instead in (("cinq", "cinquième"), ("neuf", "neuvième"), ("quatre-vingts", "quatre-vingtième")):
        if text.endswith(ending):
            return text[: -len(ending)] + instead
    return (text[:-1] if text.endswith("e") else text) + "ième"


def number(n: int, feminine: bool = False) -> Phrase:
    """The number in words; all its words are linked with each other."""
    shared = key()
    return Phrase(en(english_number(n), shared), fr(french_number(n, feminine), shared))


def ordinal(n: int, feminine: bool = False) -> Phrase:
    shared = key()
    return Phrase(en(english_ordinal(n), shared), fr(french_ordinal(n, feminine), shared))


def date(day: int, month: str, year: int | None = None, weekday: str | None = None) -> Phrase:
    """'on 14 March 1986' and 'le 14 mars 1986'; the first day is 'le premier'. 'on' is linked to 'le'."""
    after = fixed(f"{year}={year}") if year else Phrase()
    if weekday:
        day_said = f"{day}={day if day > 1 else 'premier'}@3"
        return fixed(f"on=le@1 {weekday}={DAYS[weekday]}@2 {day_said} {month}={MONTHS[month]}@4") + after
    if day == 1:
        return fixed(f"on_the=le first=premier of= {month}={MONTHS[month]}") + after
    return fixed(f"on=le {day}={day} {month}={MONTHS[month]}") + after


def time(hour: int, minute: int = 0) -> Phrase:
    """'at half past eight' and 'à huit heures et demie', on the clock of twelve hours, minutes in steps of five."""
    at = fixed("at=à")
    if hour == 12 or minute not in (0, 15, 30, 45) and minute > 30:
        raise ValueError(f"got {hour}:{minute:02}; expected an hour from 1 to 11 and minutes up to 30, or 45")
    later = hour + 1 if minute == 45 else hour
    hours, name = key(), key()
    heures = "heure" if later == 1 else "heures"
    said = en(english_number(later), hours)
    dit = fr(french_number(later, feminine=True), hours)
    if minute == 0:
        return at + Phrase((*said, *en("o'clock", name)), (*dit, *fr(heures, name)))
    if minute == 30:
        return at + Phrase((*en("half past", name), *said), (*dit, *fr(heures), *fr("et demie", name)))
    if minute == 15:
        return at + Phrase((*en("a quarter past", name), *said), (*dit, *fr(heures), *fr("et quart", name)))
    if minute == 45:
        return at + Phrase((*en("a quarter to", name), *said), (*dit, *fr(heures), *fr("moins le quart", name)))
    past = key()
    return at + Phrase(
        (*en(english_number(minute), past), *en("past"), *said), (*dit, *fr(heures), *fr(french_number(minute), past))
    )
