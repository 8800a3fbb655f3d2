"""What the reviews of `marked_reviews` are made of: names, film titles, sentences, questions.

Does: hold them, each split into what training sees and what only tests see. Does not: put anything together.
"""

from __future__ import annotations

from random import Random

SPLITS = ("training", "held out")

_FIRST = """Abena Adele Agnes Ahmed Aino Akira Alba Alma Amara Amir Anders Anouk Anton Arlo Asha Astrid Aya Beatriz
Benno Bianca Boris Bruno Camila Carlos Cecil Chiara Clara Cyrus Dalia Dario Devika Diego Dilan Dora Edgar Elif Elio Elsa
Emeka Emil Enzo Esther Fabian Farid Fatima Felipe Fiona Frida Gita Greta Gustav Hamid Hana Hassan Helga Henrik Hiroshi
Hugo Ida Ilse Imran Ingrid Irina Ismael Ivan Jamal Jelena Joana Jonas Jorge Judit Kamal Karin Kenji Kofi Lars Laszlo
Leila Leon Linnea Lorenzo Luis Magda Malik Manuel Marit Mateo Mehmet Mila Mirela Moses Nadia Naoko Nadim Nils Nina Noor
Odette Oksana Oscar Otto Pablo Paula Petra Pilar Priya Rafael Ragna Rania Ravi Renata Rosa Ruben Sakura Salma Samir
Selma Sergei Simone Sofia Soren Stefan Sven Tamar Tariq Tereza Theo Tilda Tomas Ursula Vera Viktor Wanda Xenia Yara
Yusuf Zainab Zoltan""".split()
_BEGIN = "Bek Cald Dor Fen Gar Hal Kal Lor Mar Nor Ost Pell Quil Rad Sel Tar Ulm Ver Wes Zel".split()
_END = "ander berg dale enko gate hart holm ila mere ova row stead ton vale wick".split()
_ADJECTIVES = """Amber Broken Burning Crooked Distant Empty Frozen Gentle Golden Hidden Hollow Last Little Lonely Lost
Midnight Narrow Northern Painted Paper Quiet Red Restless Salt Second Silent Silver Sleeping Stolen Velvet Western
Winter""".split()
_NOUNS = """Bridge Candle Canal Carnival Castle Clock Coast Compass Desert Garden Harbour Hour Island Kingdom Ladder Lantern
Letter Lighthouse Mirror Mountain Orchard Parade Piano Promise Railway River Road Shadow Station Storm Summer Theatre Tower
Train Valley Voyage Window Witness""".split()
# First names that are words, too, and sentences in which they're words. {town} and {day} are drawn as elsewhere.
BOTH_WAYS = {
    "Will": ["Will anybody watch it twice?", "It will run until {day}.", "Nobody will forget the second half.",
             "Will there be a sequel?", "This will not please everyone."],
    "Grace": ["Grace is what the dancing lacked.", "The dancers moved with grace.", "There was grace in every scene.",
              "Grace and speed rarely go together.", "It had more grace than wit."],
    "May": ["May I add that I laughed?", "You may want to bring a coat.", "It opens in May.",
                 "It may be too long for {day}.",
            "May is a strange month to show it."],
    "Rose": ["Rose is the colour of every curtain in it.", "A rose lies on the table.", "The curtain rose at eight.",
             "Rose petals fell from the ceiling.", "The noise rose behind us."],
    "Hope": ["I hope it comes back on {day}.", "Hope was all that kept us in our seats.", "We left without hope.",
             "Hope they clean the seats by {day}.", "There is little hope in this story."],
    "Mark": ["Mark the date and book early.", "It left no mark on me.", "The jokes missed the mark.",
             "Mark my words and stay at home.", "A mark on the wall gives the plot away."],
    "Frank": ["Frank talk fills the second half.", "To be frank, I slept.", "It is a frank story.",
              "Frank and funny, it ended too soon.", "The talk afterwards was frank."],
    "Dawn": ["Dawn breaks over {town} at the end.", "It was filmed at dawn.", "We came home at dawn.",
             "Dawn was near when we left.", "A dawn scene opens it."],
    "Joy": ["Joy is rare in this story.", "The music was a joy.", "We sang for joy.", "Joy and sorrow take turns.",
            "I felt joy and little else."],
    "Bill": ["Bill and tickets came to thirty coins.", "We paid the bill and left.", "A short film was on the bill.",
             "Bill in hand, I asked for water.", "The bill for popcorn was high."],
}

# Sentences for reviews with names: {person}, {film} are names to be found; {town}, {day}, {thing} are not.
NAMED = {
    "training": """
        {person} plays the lead with care.|The lead is played by {person}.|I would watch anything by {person}.
        {person} wrote it in a week.|The script by {person} is full of holes.|The songs were written by {person}.
        {film} was filmed in {town}.|I saw {film} on {day}.|We watched {film} with friends.|{film} runs for two hours.
        In {film} we follow a family near {town}.|After {film} we walked to {town}.|{person} directed {film} years ago.
        Next to {person} the others look tired.|{person} and {person} play two sisters.|{film} is better than {film}.
        My sister adores {person} and slept anyway.|The best scene belongs to {person}.|{person} is funny at last.
        For once {person} sings.|I laughed when {person} fell into the water.|Nobody else acts like {person}.
        {film} made {person} famous.|The camera loves {person}.|I prefer {film} to the book.|Have you seen {film}?
        With {film} the cinema in {town} opened again.|Someone behind me compared it to {film}.|{person} has a small part.
        It ends like {film} but we stayed.|On {day} they showed {film} again.|{person} was in the audience.
        """,
    "held out": """
        {person} carries the whole story.|A voice like that of {person} is rare.|My father met {person} in {town}.
        Tickets for {film} were sold out on {day}.|Whoever liked {film} should stay away.|{person} turned {film} into a play.
        I had expected more from {person}.|People still talk about {film}.|Critics in {town} praised {film} and {person}.
        Without {person} nothing would hold together.|{film} put me to sleep.|Thanks to {person} we laughed.
        """,
}
UNNAMED = """The cinema in {town} was half empty.|On {day} it rained.|We took the train to {town}.|It is set in {town}.
    The story begins near {thing}.|They meet beside {thing}.|I remember {thing} best.
    Behind {thing} someone sings.|{day} was the wrong day for it.|{town} is three hours away.
    We sat in the last row.|The seats were hard.|Somebody walks to {thing} at night.|{thing} looks painted.
    The road from {town} was long.|There is a scene with {thing}.|My sister plays the piano better.
    The lead is played without care.|I saw {thing} through a window.|We watched {thing} for minutes."""

# Sentences for questions: {x} is somebody, and {p} is what they did.
JOBS = "directed edited produced filmed designed financed".split()
WHO_FRAMES = {
    "training": ["{x} {p} it.", "It was {p} by {x}."],
    "held out": ["It was {x} who {p} it.", "They say that {x} {p} it.", "The name of the one who {p} it is {x}."],
}
SHOWN_FRAMES = {
    "training": ["We saw it in {town} on {day}.", "On {day} we saw it in {town}.", "It was shown in {town} on {day}."],
    "held out": ["On {day} they showed it in {town}.", "In {town} I watched it on {day}."],
}
HOLDERS = """my brother|my uncle|my teacher|the usher|the critic|the barber|our neighbour|our driver|our guest|the pianist|
    my father|our butcher"""
VERBS = {"like": "liked", "hate": "hated", "praise": "praised", "mock": "mocked", "notice": "noticed", "miss": "missed"}
WHAT_FRAMES = {                                        # {Holder} and {holder2} are people, {a} and {b} verbs
    "training": ["{Holder} {a} {x} and {b} {y}.", "{Holder} {a} {x} but {b} {y}.",
                 "{Holder} {a} {x} and {holder2} {b} {y}."],
    "held out": ["{Holder} {a} {x} before he {b} {y}.", "While {holder} {a} {x}, {holder2} {b} {y}."],
}
QUESTIONS = {"who": "Who {p} it?", "where": "Where was it shown?", "when": "When was it shown?",
             "what": "What did {holder} {a}?"}
_QUALITIES = "long short slow quick loud quiet first last second sad happy strange".split()
_ASPECTS = """ending music dialogue lighting chase dance costumes jokes songs wedding storm fight dream kiss speech duel
    parade feast""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def lines(text: str) -> list[str]:
    """The sentences of a block, which are separated by '|' or a new line."""
    return [line.strip() for line in text.replace("\n", "|").split("|") if line.strip()]


def _split(entries: list[str], what: str, part: float = 0.75) -> dict[str, list[str]]:
    """Shuffled once and for all, and divided: no entry is in both."""
    entries = sorted(entries)
    Random(f"marked reviews, {what}").shuffle(entries)
    cut = round(part * len(entries))
    return {"training": entries[:cut], "held out": entries[cut:]}


FIRST = _split(_FIRST, "first names")
_MADE = _split([begin + end for begin in _BEGIN for end in _END], "last names and towns", 0.5)
LAST = _split(_MADE["training"], "last names")
TOWNS = _MADE["held out"]                              # spelled like last names, and never one
_TITLES = [f"{article}{adjective} {noun}" for article in ("The ", "") for adjective in _ADJECTIVES for noun in _NOUNS]
FILMS = _split(Random("titles").sample(_TITLES, 120) + [f"The {noun}" for noun in _NOUNS], "titles")
THINGS = [f"{article} {adjective.lower()} {noun.lower()}" for article in ("the", "that") for adjective in _ADJECTIVES
          for noun in _NOUNS] + [f"the {noun.lower()}" for noun in _NOUNS]
ASPECTS = _split([f"the {quality} {aspect}" for quality in _QUALITIES for aspect in _ASPECTS] +
                 [f"the {aspect}" for aspect in _ASPECTS], "aspects")
