"""The one door to neuraloperator, which must not find wandb."""

from __future__ import annotations

import sys

# neuraloperator imports wandb if it is there, for a training loop that is not used here. That takes a second, and
# leaves folders behind in a process that is killed.
unwanted = sys.modules.setdefault("wandb", None) is None  # type: ignore[arg-type]
try:
    from neuralop.layers.fno_block import FNOBlocks
    from neuralop.layers.resample import resample
    from neuralop.layers.spectral_convolution import SpectralConv
    from neuralop.models import FNO, UNO
finally:
    if unwanted:
        del sys.modules["wandb"]

__all__ = ["FNO", "UNO", "FNOBlocks", "SpectralConv", "resample"]
