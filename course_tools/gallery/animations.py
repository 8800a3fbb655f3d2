"""The course's animations as files: `python -m course_tools animations`.

Does: write each to outputs/ as SVG and GIF, and the SVGs to notebooks/gallery; draw GIFs, for slides that don't move SVG,
with the fonts and the Pillow that are there. Does not: know what is shown (see `course_utils.interactive.animations`).
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from matplotlib import font_manager
from matplotlib.colors import to_rgb
from PIL import Image, ImageDraw, ImageFont

from course_utils.figures.text import FONT
from course_utils.files import write_bytes, write_text
from course_utils.files.paths import NOTEBOOKS, output_folder
from course_utils.interactive.animations import ANIMATIONS, MOVE, NAMED, Animation, drawn, state_at, with_captions

SCALE, FRAMES, COLOURS = 1.5, 5, 32  # a GIF's pixels for a unit, frames, colours
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}  # SVG's names and Pillow's


def main(arguments: list[str] | None = None) -> int:
    """Write the animations; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_tools animations", description=main.__doc__)
    parser.add_argument("--gallery", type=Path, default=NOTEBOOKS / "gallery", help="where the committed SVGs are")
    gallery = parser.parse_args(arguments).gallery
    write_pictures(gallery)
    write_pictures(output_folder())
    for name, make in ANIMATIONS.items():
        write_bytes(output_folder() / f"{name}.gif", gif(make()))
        print(f"{name}: {name}.gif, {name}-moving.svg and {name}-still.svg in {output_folder().name}/")
    return 0


def write_pictures(folder: Path) -> None:
    """Write each animation as NAME-moving.svg and NAME-still.svg."""
    for name, make in ANIMATIONS.items():
        animation = make()
        write_text(folder / f"{name}-moving.svg", drawn(animation))
        write_text(folder / f"{name}-still.svg", drawn(animation, moving=False))

def gif(animation: Animation) -> bytes:
    """The animation with its captions as a GIF that plays in a loop, for slides that don't move SVG."""
    whole = with_captions(animation)
    pictures, times = [], []
    hold, frame = 1000 * animation.seconds * (1 - MOVE), 1000 * animation.seconds * MOVE / FRAMES
    for step in range(len(whole.captions)):
        for part in range(1 if step else FRAMES, FRAMES + 1):
            pictures.append(_frame(whole, step, part / FRAMES))
            times.append(10 * round((hold if part == FRAMES else frame) / 10))
        times[-1] += 10 * round(1000 * animation.seconds * MOVE / 10) if step == 0 else 0
    palette = pictures[FRAMES * animation.still].quantize(COLOURS)
    few = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    out = io.BytesIO()
    few[0].save(out, "GIF", save_all=True, append_images=few[1:], duration=times, loop=0, optimize=True)
    return out.getvalue()


def _frame(animation: Animation, step: int, part: float) -> Image.Image:
    sheet = Image.new("RGB", (round(SCALE * animation.width), round(SCALE * animation.height)), "white")
    path = font_manager.findfont(FONT)
    for shape in animation.shapes:
        state = state_at(shape, step, part)
        if state.opacity < 0.01:
            continue
        fill = to_rgb(state.fill or NAMED.get(shape.fill, shape.fill))
        colour = (*(round(255 * c) for c in fill), round(255 * state.opacity))
        layer = sheet if colour[3] == 255 else Image.new("RGBA", sheet.size, (*colour[:3], 0))
        pen, x, y = ImageDraw.Draw(layer), SCALE * (shape.x + state.x), SCALE * (shape.y + state.y)
        if shape.text is None:
            edge = shape.edge and (*(round(255 * c) for c in to_rgb(shape.edge)), colour[3])
            corner = (x + SCALE * shape.width * state.stretch, y + SCALE * shape.height)
            pen.rectangle((x, y, *corner), fill=colour, outline=edge)
        else:
            font = ImageFont.truetype(path, SCALE * shape.size)
            pen.text((x, y), shape.text, fill=colour, font=font, anchor=ANCHORS[shape.anchor])
        if layer is not sheet:
            sheet.paste(layer, (0, 0), layer)
    return sheet
