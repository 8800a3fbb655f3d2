"""Classes that are a part of another one now are still found by their old names, for one release."""

import importlib
import warnings

import pytest

from course_utils import moved

OLD = [(module, old, new.partition(":")[2]) for module, names in moved.NAMES.items() for old, new in names.items()
       if module != "course_utils.options"]


@pytest.mark.parametrize("module, old, now", OLD, ids=[f"{module}.{old}" for module, old, _ in OLD])
def test_an_old_name_is_the_class_of_today_and_warns_once(module, old, now, monkeypatch):
    monkeypatch.setattr(moved, "_warned", [])
    module = importlib.import_module(module)
    with pytest.warns(FutureWarning, match=f"{old} is now .*{now}; the old name works in this release"):
        found = getattr(module, old)
    assert found is getattr(module, now) and old not in module.__all__
    with warnings.catch_warnings(action="error"):
        assert getattr(module, old) is found


def test_a_name_that_never_was_is_no_attribute():
    with pytest.raises(ImportError, match="cannot import name 'HalfAttention'"):
        from course_utils.multi_head_attention import HalfAttention  # noqa: F401
