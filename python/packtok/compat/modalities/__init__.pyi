# The public names of this package, imported on first use: see packtok/lazy.py.

from packtok.compat.modalities.collators import LossMaskingCollateFnWrapper as LossMaskingCollateFnWrapper
from packtok.compat.modalities.files import FileExistencePolicy as FileExistencePolicy
from packtok.compat.modalities.files import (
    create_filtered_tokenized_dataset as create_filtered_tokenized_dataset,
)
from packtok.compat.modalities.files import create_instruction_tuning_data as create_instruction_tuning_data
from packtok.compat.modalities.files import create_shuffled_dataset_chunk as create_shuffled_dataset_chunk
from packtok.compat.modalities.files import (
    create_shuffled_jsonl_dataset_chunk as create_shuffled_jsonl_dataset_chunk,
)
from packtok.compat.modalities.files import filter_dataset as filter_dataset
from packtok.compat.modalities.files import shuffle_jsonl_data as shuffle_jsonl_data
from packtok.compat.modalities.files import shuffle_tokenized_data as shuffle_tokenized_data
