"""Where modules and names of earlier releases are now, so that copies of the notebooks made then go on working.

Does: let `import course_utils.experiments.recipes` give `course_utils.recipes`, and `course_utils.classifier.TokenEncoder`
the class of which it's a part now, with one warning. Does not: know what only the course's makers imported. The whole file
goes with the next release.
"""

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from types import ModuleType

# what notebooks imported from -> where that is now; a dictionary says it name by name, "new.module:NEW_NAME"
MODULES: dict[str, str | dict[str, str]] = {
    "course_utils.experiments": {},
    "course_utils.experiments.results": "course_utils.results",
    "course_utils.experiments.recipes": "course_utils.recipes",
    "course_utils.experiments.trained_models": "course_utils.recipes.trained_models",
    "course_utils.experiments.small_language_models": "course_utils.recipes.small_language_models",
    "course_utils.experiments.program_models": "course_utils.recipes.small_language_models",
    "course_utils.experiments.translators": "course_utils.translation.translators",
    "course_utils.experiments.translation_scores": "course_utils.translation.scores",
    "course_utils.experiments.sets": {},
    "course_utils.experiments.sets.induction": "course_utils.recipes.small_language_models",
    "course_utils.experiments.sets.learning_curves": "course_utils.recipes.learning_curves",
    "course_utils.experiments.sets.pretrained_vectors": "course_utils.results",
    "course_utils.experiments.sets.static_vectors": {
        "NUMBERS": "course_utils.recipes.learning_curves:BAG_NUMBERS",
        "RATES": "course_utils.recipes.learning_curves:BAG_RATES",
        "STEPS": "course_utils.recipes.learning_curves:BAG_STEPS",
    },
    "course_utils.experiments.sets.summaries_by_copying": "course_utils.recipes.copied_summaries",
    "course_utils.experiments.sets.translation": "course_utils.translation.transformers",
    "course_utils.experiments.sets.translation_speed": "course_utils.translation.transformers",
    "course_utils.experiments.sets.which_data": {"RATES": "course_utils.recipes.learning_curves:FINE_TUNING_RATES"},
    "course_utils.tools": {},
    "course_utils.tools.hosted": "course_utils.copies.hosted",
    "course_utils.tools.one_file": "course_tools.notebooks.one_file",
    "course_utils.tools.start": "course_utils.copies.start",
    "course_utils.training.options": "course_utils.options",
}
# of modules that are still there: the names that are gone -> where each is now
NAMES: dict[str, dict[str, str]] = {
    "course_utils.classifier": {"TokenEncoder": "course_utils.classifier:SelfAttentionClassifier",
                                "ModelWithVocabulary": "course_utils.classifier:ReviewClassifier"},
    "course_utils.encoder_decoder": dict.fromkeys(("Ends", "EncoderDecoder"), "course_utils.encoder_decoder:Transformer"),
    "course_utils.encoder_decoder.model": dict.fromkeys(("Ends", "EncoderDecoder"),
                                                        "course_utils.encoder_decoder.model:Transformer"),
    "course_utils.hugging_face": {name: f"course_utils.library_translators:{name}" for name in (
        "THEIR_TRANSFORMERS", "TRANSFORMER_NAMES", "library_transformer_config", "library_transformer_weights",
        "save_transformer", "sines_first")},
    "course_utils.language_model": {"CausalDecoder": "course_utils.language_model:LanguageModel"},
    "course_utils.multi_head_attention": {"HeadProjections": "course_utils.multi_head_attention:MultiHeadAttention"},
    "course_utils.options": {"renamed": "course_utils.moved:renamed"},
    "course_utils.other_heads": {"Rows": "course_utils.recipes.name_finders:Rows"},
    "course_utils.tokenization": {name: f"course_utils.byte_pairs:{name}"
                                  for name in ("BPETokenizer", "apply_merges", "learn_merges", "merge")},
}
_warned: list[str] = []


def renamed(notebook: str, **names: str):
    """The decorator of an option in notebook 05 of release 2.2; it does nothing any more."""
    return lambda method: method


def _warn(old: str, new: str) -> None:
    """Say once what has moved where, however many old names a notebook has."""
    if not _warned:
        _warned.append(old)
        warnings.warn(f"{old} is now {new}; the old name works in this release. make update brings your copies of the "
                      "notebooks up to date, with your answers.", FutureWarning, stacklevel=3)


def _looked_up(where: str) -> object:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


def _by_old_name(module: str, name: str) -> object:
    if name not in NAMES[module]:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = NAMES[module][name]
    _warn(f"{module}.{name}", new.replace(":", "."))
    return _looked_up(new)


class _Old(ModuleType):
    """A module of an earlier release; its names are looked up where they are now."""

    def __getattr__(self, name: str):
        if f"{self.__name__}.{name}" in MODULES:
            return importlib.import_module(f"{self.__name__}.{name}")
        new = MODULES[self.__name__]
        if name.startswith("__") or (isinstance(new, dict) and name not in new):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _looked_up(new[name] if isinstance(new, dict) else f"{new}:{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of the first table, and gives those of the second the names that are gone."""

    def find_spec(self, fullname: str, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
        if fullname in MODULES:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=isinstance(MODULES[fullname], dict))
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if fullname in NAMES else None
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                module.__getattr__ = functools.partial(_by_old_name, fullname)

            spec.loader.exec_module = exec_module
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Old(spec.name, f"Moved: {MODULES[spec.name] or 'see its parts'}.")

    def exec_module(self, module: ModuleType) -> None:
        new = MODULES[module.__name__]
        if isinstance(new, str):
            importlib.import_module(new)                # so that what is missing there is said at the import
        if new:
            _warn(module.__name__, new if isinstance(new, str) else next(iter(new.values())).partition(":")[0])


def install() -> None:
    """Let Python find the old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
