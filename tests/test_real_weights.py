"""The notebooks about a published model, executed with its weights, where COURSE_MODELS names a folder that has them."""

import time

import pytest

from course_utils.copies.notebooks import NOTEBOOKS, execute

SECONDS = 180                                           # of the clock, on two cores that have nothing else to do


@pytest.mark.slow
@pytest.mark.parametrize("name", ["20_real_language_model"])
def test_every_cell_runs_and_every_claim_holds_with_the_published_weights(name, published_models):
    if not (published_models / "smollm2").is_dir():
        pytest.skip("no SmolLM2 in COURSE_MODELS")
    begun = time.perf_counter()
    notebook = execute(NOTEBOOKS / f"{name}.ipynb")
    seconds = time.perf_counter() - begun
    shown = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "random numbers stands in" not in shown and "✗" not in shown
    print(f"{name}: {seconds:.0f} s")
    assert seconds < 4 * SECONDS                        # a busy machine is slower, and no reason to fail
