"""Writes the golden items of CEPE's loader, in an environment with mosaicml-streaming 0.13.0.

The argument is a checkout of princeton-nlp/CEPE (53ca69b).
PYTHONPATH=tests/support python tests/golden/make_cepe.py CHECKOUT
"""

import shutil
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from cepe_samples import CASES, COLUMNS, DOMAINS, ITEMS, Tokenizer, sample
from streaming import MDSWriter

FOLDER = Path(__file__).parent / "cepe"

if __name__ == "__main__":
    # CEPE's module imports a class of transformers for another loader.
    transformers: Any = types.ModuleType("transformers")
    transformers.DataCollatorForLanguageModeling = object
    sys.modules["transformers"] = transformers
    sys.path.insert(0, sys.argv[1])
    from data import CombineStreamingDataset, ContextDataCollator

    shutil.rmtree(FOLDER, ignore_errors=True)
    for kind, columns in COLUMNS.items():
        for domain, count in DOMAINS.items():
            with MDSWriter(out=str(FOLDER / kind / domain), columns=columns) as writer:
                for i in range(count):
                    writer.write(sample(kind, domain, i))
    arrays: dict[str, Any] = {}
    for name, case in CASES.items():
        options = dict(case)
        retrieval, logits = options.pop("retrieval", False), options.pop("logits", False)
        dataset = CombineStreamingDataset(
            str(FOLDER / "samples"),
            retrieval_remote=str(FOLDER / "retrieval") if retrieval else None,
            distill_remote=str(FOLDER / "logits") if logits else None,
            domains=",".join(DOMAINS),
            tokenizer=Tokenizer(),
            **options,
        )
        # Items of both domains, around their border.
        items = {i: dataset[i] for i in ITEMS}
        for i, item in items.items():
            arrays |= {f"{name}/{i}/{key}": np.asarray(value) for key, value in item.items()}
        batch = ContextDataCollator()(list(items.values()))
        arrays |= {f"{name}/batch/{key}": value.numpy() for key, value in batch.items()}
    np.savez_compressed(FOLDER / "items.npz", allow_pickle=False, **arrays)
