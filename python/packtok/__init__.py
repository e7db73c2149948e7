"""Packs text corpora into token files for language-model training: exact, safe, fast.

The names in `__init__.pyi` are the whole public interface. They are imported on first use, because many need
OmegaConf, pydantic or torch.
"""

from packtok import interrupts, limits

# Comes before all other imports: those take long enough for Ctrl-C to arrive during them, and need most of
# the memory.
interrupts.answer_if_program()
limits.report_if_program()

from packtok import _packtok as _packtok  # noqa: E402
from packtok.lazy import lazy_names  # noqa: E402

__getattr__, __dir__ = lazy_names(__name__)
