# The public names of this package, imported on first use: see packtok/lazy.py.

from packtok.compat.tatm.dataset import TatmMemmapDataset as TatmMemmapDataset
from packtok.compat.tatm.described import get_dataset as get_dataset
from packtok.compat.tatm.items import torch_collate_fn as torch_collate_fn
from packtok.compat.tatm.metadata import CorpusSeparationStrategy as CorpusSeparationStrategy
from packtok.compat.tatm.metadata import DataContentType as DataContentType
from packtok.compat.tatm.metadata import TatmDataMetadata as TatmDataMetadata
from packtok.compat.tatm.metadata import TokenizedMetadataComponenet as TokenizedMetadataComponenet
from packtok.compat.tatm.texts import TatmData as TatmData
from packtok.compat.tatm.texts import TatmTextData as TatmTextData
from packtok.compat.tatm.texts import get_data as get_data
from packtok.data.distillation import distillation_loss as distillation_loss
from packtok.data.encoder_decoder import ContextDataCollator as ContextDataCollator
from packtok.data.encoder_decoder import EncoderDecoderDataset as EncoderDecoderDataset
