"""Continues texts with a trained model: the one given with --prompt, or each line that is typed."""

import sys
from pathlib import Path
from typing import Annotated

import torch
import typer

import checkpoint
import packtok
from model import GPT


class Writer:
    """A trained model with its tokenizer."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        """Loads the latest checkpoint in ``folder``.

        Raises:
            FileNotFoundError: If there is none.
        """
        steps = checkpoint.steps(folder)
        if not steps:
            raise FileNotFoundError(f"{folder}: there is no checkpoint; train first")
        content = checkpoint.load(checkpoint.path_of(folder, steps[-1]), device)
        self.model = GPT(**content["model_options"]).to(device).eval()
        self.model.load_state_dict(content["model"])
        self.device = device
        self.tokenizer = packtok.Tokenizer.from_file(folder / "tokenizer.json")
        self.eod_id: int = content["eod_id"]

    def complete(
        self, prompt: str, *, num_tokens: int, temperature: float, generator: torch.Generator
    ) -> str:
        """Returns ``prompt`` with up to ``num_tokens`` more tokens; fewer if the document ends."""
        ids = self.tokenizer.encode(prompt, add_special_tokens=False).tolist()
        for _ in range(num_tokens):
            next_id = self._next_id(ids, temperature, generator)
            if next_id == self.eod_id:
                break
            ids.append(next_id)
        return self.tokenizer.decode(ids)

    @torch.inference_mode()
    def _next_id(self, ids: list[int], temperature: float, generator: torch.Generator) -> int:
        # In training, the first token of a document follows the EOD of another.
        seen = (ids or [self.eod_id])[-self.model.context_length :]
        logits = self.model(torch.tensor([seen], device=self.device))[0, -1, : self.model.vocab_size].cpu()
        if temperature == 0:
            return int(logits.argmax())
        probabilities = (logits.float() / temperature).softmax(-1)
        return int(torch.multinomial(probabilities, 1, generator=generator))


def main(
    folder: Annotated[Path, typer.Argument(help="The output folder of a run.")],
    prompt: Annotated[str | None, typer.Option(help="The text to continue; asked for if not given.")] = None,
    num_tokens: Annotated[int, typer.Option(min=1, help="How many tokens to add at most.")] = 80,
    temperature: Annotated[float, typer.Option(min=0, help="0 takes the most likely token.")] = 0.7,
    seed: Annotated[int, typer.Option(help="Another seed gives another text.")] = 1,
) -> None:
    """Continues texts with the latest checkpoint in FOLDER."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        writer = Writer(folder, device)
    except OSError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    generator = torch.Generator().manual_seed(seed)

    def answer(text: str) -> str:
        return writer.complete(text, num_tokens=num_tokens, temperature=temperature, generator=generator)

    if prompt is not None:
        print(answer(prompt))
        return
    print("Type the beginning of a text; Ctrl-D ends.", file=sys.stderr)
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            print(file=sys.stderr)
            return
        print(answer(line) + "\n")


if __name__ == "__main__":
    typer.run(main)
