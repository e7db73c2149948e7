# The public names of this package, imported on first use: see packtok/lazy.py.

from packtok.compat.modalities.collators import LossMaskingCollateFnWrapper as LossMaskingCollateFnWrapper
from packtok.compat.modalities.files import FileExistencePolicy as FileExistencePolicy
from packtok.compat.modalities.files import (
    create_filtered_tokenized_dataset as create_filtered_tokenized_dataset,
)
