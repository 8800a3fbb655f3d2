"""Cut a text into its sentences, and translate it sentence by sentence.

    split_sentences('Dr. Lee left. "Why?" she asked.')   # ['Dr. Lee left.', '"Why?" she asked.']

Does: cut by a plain rule, in English and in French, and put translations together again, with the text's line breaks. Does
not: understand a text. A sentence that begins with a small letter or a number isn't found, and neither is one that follows
an abbreviation or an initial, such as 'I chose plan B. He did, too.'
"""

import re
from collections.abc import Sequence

# . ! ? … with closing quotes or brackets, a space, and a capital, or a quote that opens
END = re.compile(r"""[.!?…]+["'”’»)\]]*(\s+)(?=["'“‘(\[]?[A-ZÀ-ÖØ-Þ]|(?:["'“‘]|«\s?)\w)""")
ABBREVIATIONS = set("Mr Mrs Ms Messrs Dr Prof St Mt Rev Hon Gen Col Capt Lt Sgt Sen Rep Gov vs e.g i.e cf".split())
PRONOUN = re.compile(r"\b(it|they)\b", re.I)            # its French has the gender of a noun further back
LOOK_BACK = 2                                           # sentences, as in the course's translations
TOGETHER = 200                                          # parts that a model gets at a time


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the space between them; none for a text of nothing but space.

    A sentence ends at . ! ? or … before a space and a capital or an opening quote, but not after an abbreviation (Mr. Dr.
    St. and others) or an initial (J. Smith); I is a word.
    """
    found, start = [], 0
    for end in END.finditer(text):
        last = re.split(r"\s", text[start : end.start()])[-1].lstrip("\"'“‘«([")
        if end[0].startswith(".") and (last in ABBREVIATIONS or re.fullmatch(r"(?:[A-Z]\.)*[A-Z]", last) and last != "I"):
            continue
        found.append(text[start : end.start(1)])
        start = end.end()
    return [sentence for sentence in (*(one.strip() for one in found), text[start:].strip()) if sentence]


def _context(translator, before: Sequence[str], sentence: str) -> list[str]:
    """The sentences before this one that a translator has to see: those that may have the noun of its pronoun.

    Only a translator with word lists has learned to look back; as many as it can read, LOOK_BACK at most.
    """
    from course_utils.data.translations import split_english

    if getattr(translator, "source_words", None) is None or not PRONOUN.search(sentence):
        return []
    seen = list(before[-LOOK_BACK:])
    while seen and len(split_english(" ".join([*seen, sentence]))) > translator.model.config.max_len:
        del seen[0]
    return seen


def translate_texts(translator, texts: Sequence[str], beam: int) -> list[str]:
    """Each text sentence by sentence, with its line breaks; `translator` is a `Translator` or a `SubwordTranslator`.

    A sentence with 'it' or 'they' is translated with the two before it, by a translator that can make use of them, and the
    last sentence of what comes out is its translation; if not as many sentences come out, it's translated alone. Raises
    ValueError as `translate` of the translator does.
    """
    cut = [[split_sentences(line) for line in text.splitlines()] for text in texts]
    parts = {}                                          # everything that has to be translated, each once
    for sentences in (line for lines in cut for line in lines):
        for i, sentence in enumerate(sentences):
            parts |= {sentence: "", " ".join([*_context(translator, sentences[:i], sentence), sentence]): ""}
    given = list(parts)
    for first in range(0, len(given), TOGETHER):
        some = given[first : first + TOGETHER]
        parts |= {part: french.replace("\n", " ") for part, french in zip(some, translator.translate(some, beam=beam))}

    def french_of(before: list[str], sentence: str) -> str:
        context = _context(translator, before, sentence)
        whole = split_sentences(parts[" ".join([*context, sentence])])
        return whole[-1] if context and len(whole) == len(context) + 1 else parts[sentence]

    return ["\n".join(" ".join(french_of(sentences[:i], sentence) for i, sentence in enumerate(sentences))
                      for sentences in lines) for lines in cut]
