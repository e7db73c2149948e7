# The public names of this package, imported on first use: see packtok/lazy.py.

from packtok.stream.dataset import CheckpointableDataset as CheckpointableDataset
from packtok.stream.dataset import FileFormat as FileFormat
from packtok.stream.dataset import ParallelExecutorType as ParallelExecutorType
from packtok.stream.dataset import Sample as Sample
from packtok.stream.dataset import TokenArray as TokenArray
from packtok.stream.dataset import concat_datasets as concat_datasets
from packtok.stream.dataset import interleave_datasets as interleave_datasets
from packtok.stream.inputs.braces import braceexpand as braceexpand
from packtok.stream.iterator import CheckpointableIterator as CheckpointableIterator
from packtok.stream.state import StateDict as StateDict
from packtok.stream.state import merge_states as merge_states
