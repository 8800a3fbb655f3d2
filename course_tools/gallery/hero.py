"""The README's moving picture: two reviews with the same words, and what one head looks up in each.

Does: draw a GIF of ten seconds that plays once and ends on both reviews with one sentence below. Every number in it is the
model's. Does not: choose the reviews or read them (see `figures.read_course`).
"""

from __future__ import annotations

import io
import math
from typing import NamedTuple

from matplotlib import font_manager
from matplotlib.colors import to_rgb
from PIL import Image, ImageDraw, ImageFont

from course_utils.claims import claim
from course_utils.data import LABEL_NAMES
from course_utils.figures import COLOURS, NEGATIVE, POSITIVE
from course_utils.figures.text import FONT

NAME = "twins-read"
WIDTH, HEIGHT, FINE, COLOURS_KEPT = 880, 330, 2, 64     # in pixels; drawn FINE times larger, then reduced; of the palette
FRAME, BIG, SMALL = 0.07, 23, 16                        # seconds of a frame that moves; sizes of type
INK, PAPER, ARC = "#1a1a1a", "#ffffff", COLOURS[2]
LOOKED_UP = "The same words, opposite labels: one head looks up what the film was."


class Review(NamedTuple):
    """A review as the classifier reads it: its words, what 'film' attends to in one head, the label, its probability."""

    words: list[str]
    weights: list[float]                                # one for each word; sum 1
    label: int
    probability: float


class Scene(NamedTuple):
    """What one frame shows: words at their places, arcs and verdicts as far as they have come (0 to 1), a sentence."""

    places: list[list[tuple[float, float]]]             # of each review, each word's middle and lift, in pixels
    arcs: list[float]
    verdicts: list[float]
    sentence: str
    seconds: float


def reviews_of(course) -> list[Review]:
    """The twins of the gallery. Checks what the picture says of them."""
    twins = []
    for row, seen in zip(course.twins, course.seen):
        words = [token.text for token in seen.tokens]
        row_of_film = seen.attentions[0, 0][words.index("film")].tolist()
        twins.append(Review(words, row_of_film, row["label"], float(seen.probabilities[LABEL_NAMES[row["label"]]])))
    first, second = twins
    claim("the twins have the same words", sorted(first.words) == sorted(second.words))
    claim("they have opposite labels, and the model gives both", {first.label, second.label} == {0, 1}
          and min(first.probability, second.probability) > 0.9)
    claim("'film' looks up the opinion about the film in both", all(
        max(twin.weights) > 0.9 and twin.weights.index(max(twin.weights)) == twin.words.index("was") + 1 for twin in twins))
    return twins


def described(twins: list[Review]) -> str:
    """What the picture shows, for those who don't see it."""
    parts = []
    for twin in twins:
        parts.append(f"'{sentence_of(twin)}': 'film' gives {max(twin.weights):.2f} of its attention to '{_found(twin)}', "
                     f"and the model says {LABEL_NAMES[twin.label]} ({twin.probability:.2f})")
    return f"Two reviews with the same words. {'. '.join(parts)}. {LOOKED_UP}"


def sentence_of(twin: Review) -> str:
    """The words as a sentence."""
    text = " ".join(twin.words)
    return text[0].upper() + text[1:].replace(" ;", ";").replace(" .", ".")


def gif(twins: list[Review]) -> bytes:
    """The picture as a GIF that plays once: ten seconds, of which the last three are the picture to keep."""
    scenes = story(twins)
    sheets = [_drawn(twins, scene) for scene in scenes]
    colours = sheets[-1].quantize(COLOURS_KEPT).getpalette()
    palette = Image.new("P", (1, 1))                    # a mean of white and what's nearly white is grey: paper is white
    palette.putpalette([255 if part > 235 else part for part in colours])
    few = [sheet.quantize(palette=palette, dither=Image.Dither.NONE) for sheet in sheets]
    out = io.BytesIO()                                  # without `loop` it plays once
    few[0].save(out, "GIF", save_all=True, append_images=few[1:], duration=[round(1000 * scene.seconds) for scene in scenes],
                optimize=True)
    return out.getvalue()


def story(twins: list[Review]) -> list[Scene]:
    """The frames: one review, where 'film' looks, the verdict; two words change places; look and verdict again; both."""
    first, second = places_of(twins[0]), places_of(twins[1])
    swapped = [a for a, b in zip(twins[0].words, twins[1].words) if a != b]
    other = {word: twins[1].words.index(word) for word in swapped}         # where it stands in the second
    ends = [second[other.get(word, i)] for i, word in enumerate(twins[0].words)]
    sides = [(swapped.index(word) or -1) if word in swapped else 0 for word in twins[0].words]
    scenes = [Scene([first], [0], [0], "A review.", 1.0)]
    looking = f"Where does 'film' look? One head of the trained model: '{_found(twins[0])}'."
    scenes += [Scene([first], [part], [0], looking, FRAME) for part in _steps(9)]
    scenes += [Scene([first], [1], [part], looking, FRAME) for part in _steps(5)]
    scenes.append(Scene([first], [1], [1], looking, 1.2))
    scenes.append(Scene([first], [0], [0], "Two words change places, nothing else.", 0.5))
    for part in _steps(13):
        up = 34 * math.sin(math.pi * part)
        moved = [(a + (b - a) * part, up * side) for (a, _), (b, _), side in zip(first, ends, sides)]
        scenes.append(Scene([moved], [0], [0], "Two words change places, nothing else.", FRAME))
    again = f"The same head: '{_found(twins[1])}'."
    scenes += [Scene([ends], [part], [0], again, FRAME) for part in _steps(9)]
    scenes += [Scene([ends], [1], [part], again, FRAME) for part in _steps(5)]
    scenes.append(Scene([ends], [1], [1], again, 1.2))
    rest = 10 - sum(scene.seconds for scene in scenes)
    return [*scenes, Scene([first, second], [1, 1], [1, 1], LOOKED_UP, rest)]


def places_of(twin: Review) -> list[tuple[float, float]]:
    """Where each word of a line stands, beside the verdict: its middle in pixels, and 0, since none is lifted."""
    pen, font = ImageDraw.Draw(Image.new("RGB", (8, 8))), _font(BIG)
    wide = [pen.textlength(word, font=font) / FINE for word in twin.words]
    space, x, places = 14, (WIDTH - 170 - sum(wide) - 14 * (len(wide) - 1)) / 2, []
    for one in wide:
        places.append((x + one / 2, 0.0))
        x += one + space
    return places


def _found(twin: Review) -> str:
    return twin.words[twin.weights.index(max(twin.weights))]


def _steps(number: int) -> list[float]:
    """Parts of a movement, slow at both ends."""
    return [(i / number) ** 2 * (3 - 2 * i / number) for i in range(1, number + 1)]


def _font(size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(font_manager.findfont(FONT), FINE * size)


def _drawn(twins: list[Review], scene: Scene) -> Image.Image:
    sheet = Image.new("RGB", (FINE * WIDTH, FINE * HEIGHT), PAPER)
    lines = (190,) if len(scene.places) == 1 else (112, 236)
    moved = scene.places[0] != places_of(twins[0])
    for i, (places, arc, verdict, y) in enumerate(zip(scene.places, scene.arcs, scene.verdicts, lines)):
        twin = twins[1] if moved or i else twins[0]
        words = twins[0].words if moved else twin.words  # the words that moved keep their order in the list
        _line(sheet, twin, words, places, y, arc, verdict)
    middle = FINE * WIDTH / 2, FINE * (HEIGHT - 26)
    ImageDraw.Draw(sheet).text(middle, scene.sentence, fill=INK, font=_font(19), anchor="ms")
    return sheet.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _line(sheet: Image.Image, twin: Review, words: list[str], places: list[tuple], y: float, arc: float,
          verdict: float) -> None:
    """One review: its words, arcs from 'film' as wide as their weights, and the verdict at the right."""
    pen, film = ImageDraw.Draw(sheet), places[words.index("film")][0]
    if arc > 0:
        for word, weight in zip(twin.words, twin.weights):
            to = places[words.index(word)][0]
            if weight < 0.02 or to == film:
                continue
            wide, half, left = abs(to - film), max(abs(to - film) / 4, 18), min(to, film)
            box = [FINE * v for v in (left, y - 22 - half, left + wide, y - 22 + half)]
            span = (180, 180 + 180 * arc) if to > film else (360 - 180 * arc, 360)
            pen.arc(box, *span, fill=ARC, width=max(1, round(FINE * 7 * weight)))
            if arc == 1 and weight > 0.5:
                pen.text((FINE * (left + wide / 2), FINE * (y - 27 - half)), f"{weight:.2f}", fill=INK, font=_font(SMALL),
                         anchor="ms")
    for word, (place, lift) in zip(words, places):
        looks = word == "film" or (arc == 1 and word == _found(twin))
        pen.text((FINE * place, FINE * (y - lift)), word, font=_font(BIG), anchor="ms", fill=ARC if looks else INK)
    if verdict > 0:
        colour = to_rgb(POSITIVE if twin.label else NEGATIVE)
        mixed = tuple(round(255 * (1 - verdict * (1 - part))) for part in colour)
        box = [FINE * v for v in (WIDTH - 178, y - 27, WIDTH - 28, y + 13)]
        pen.rounded_rectangle(box, radius=FINE * 6, fill=mixed)
        pen.text((FINE * (WIDTH - 103), FINE * y), f"{LABEL_NAMES[twin.label]} {twin.probability:.2f}", fill=PAPER,
                 font=_font(17), anchor="ms")
