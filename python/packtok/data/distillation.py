"""The loss of a student against stored teacher signals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["distillation_loss"]

# The loss of each row: student logits (N, V) in float32, then the rows of the targets.
_RowLoss = Callable[..., Tensor]


def distillation_loss(
    student_logits: Tensor,
    batch: Mapping[str, Any],
    *,
    vocab_size: int | None = None,
    chunk_positions: int = 512,
) -> Tensor:
    """Returns the mean loss of the last D positions of a student against the targets in ``batch``.

    With ``distill_prob`` (B, D, k + 1) and ``distill_index`` (B, D, k), it is the Kullback-Leibler divergence
    from the teacher to the student over k + 1 outcomes: each of the k ids, and all other ids together. The
    teacher's remaining mass, the last column, is compared with the student's mass outside of the k ids.
    Neither side is normalized over the k ids alone, so a student that agrees with the teacher has a loss of
    0, but how it divides the remaining mass has no effect. If k is the vocabulary, this is the divergence of
    the whole distributions.

    With ``draw_index`` (B, D, N), it is the cross-entropy against the mean of the N drawn ids. Its
    expectation over the draws is the divergence plus the teacher's entropy, which does not depend on the
    student, so gradients are unbiased. There is no remaining mass: every id can be drawn.

    The loss is computed in float32, ``chunk_positions`` at a time, and again for the gradients, so that
    besides the gradient of ``student_logits`` it takes memory for one chunk only. Second derivatives are not
    supported.

    Args:
        student_logits: (B, L, V) with L >= D, of any floating-point type. Row i of the targets is the
            prediction after decoder token i, as is row i of the last D logits.
        batch: The targets; other keys are ignored.
        vocab_size: Size of the tokenizer's vocabulary. Columns beyond it, which pad the student's head, do
            not count.
        chunk_positions: Positions whose float32 logits exist at once.

    Raises:
        ValueError: If targets are missing or do not fit the logits.
    """
    targets, row_loss = _targets(batch)
    _check_shapes(student_logits, targets, vocab_size)
    chunks = _Chunks(row_loss, targets[0].shape[1], vocab_size, chunk_positions)
    on_device = [target.to(student_logits.device) for target in targets]
    loss: Tensor = _Chunked.apply(student_logits, chunks, *on_device)
    return loss


def _targets(batch: Mapping[str, Any]) -> tuple[list[Tensor], _RowLoss]:
    present = [name for name in ("distill_prob", "distill_index", "draw_index") if name in batch]
    if present == ["draw_index"]:
        return [batch["draw_index"]], _cross_entropy
    if present == ["distill_prob", "distill_index"]:
        return [batch["distill_prob"], batch["distill_index"]], _divergence
    raise ValueError(
        f"the batch has {', '.join(present) or 'no targets'}; expected distill_prob and distill_index, or "
        "draw_index"
    )


def _check_shapes(logits: Tensor, targets: list[Tensor], vocab_size: int | None) -> None:
    if logits.dim() != 3:
        raise ValueError(f"student_logits has shape {tuple(logits.shape)}, expected (B, L, V)")
    if vocab_size is not None and not 1 <= vocab_size <= logits.shape[2]:
        raise ValueError(f"vocab_size is {vocab_size}, but the logits have {logits.shape[2]} columns")
    for target in targets:
        shape = tuple(target.shape)
        if len(shape) != 3 or shape[0] != logits.shape[0] or shape[1] > logits.shape[1] or 0 in shape:
            raise ValueError(
                f"targets have shape {shape}, expected ({logits.shape[0]}, D, n) with D at most "
                f"{logits.shape[1]}"
            )
    if len(targets) == 2:
        prob, index = (tuple(target.shape) for target in targets)
        if prob != (*index[:2], index[2] + 1):
            raise ValueError(f"distill_prob has shape {prob}, expected {(*index[:2], index[2] + 1)}")


def _divergence(logits: Tensor, prob: Tensor, index: Tensor) -> Tensor:
    index = index.long()
    total = logits.logsumexp(-1, keepdim=True)
    top = logits.gather(-1, index)
    prob = prob.to(logits.dtype)
    if index.shape[-1] < logits.shape[-1]:
        # The sum is computed over the other ids: one minus the top ids would be rounding errors if the rest
        # is small.
        others = logits.scatter(-1, index, -torch.inf).logsumexp(-1, keepdim=True)
        student = torch.cat([top, others], dim=-1) - total
    else:
        student, prob = top - total, prob[:, :-1]
    # Normalizes the stored probabilities, which are rounded.
    prob = prob / prob.sum(-1, keepdim=True)
    return torch.xlogy(prob, prob).sum(-1) - (prob * student).sum(-1)


def _cross_entropy(logits: Tensor, drawn: Tensor) -> Tensor:
    chosen = logits.gather(-1, drawn.long())
    return logits.logsumexp(-1) - chosen.mean(-1)


@dataclass(frozen=True)
class _Chunks:
    """How rows are divided into chunks."""

    row_loss: _RowLoss
    num_positions: int
    vocab_size: int | None
    size: int

    def views(self, logits: Tensor) -> Iterator[Tensor]:
        """Yields the logits of each chunk; a chunk is in one sample, so nothing is copied."""
        for sample in logits[:, -self.num_positions :, : self.vocab_size]:
            yield from sample.split(self.size)

    def rows(self, targets: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        """Yields the targets of each chunk."""
        for sample in zip(*targets, strict=True):
            yield from zip(*(target.split(self.size) for target in sample), strict=True)


class _Chunked(torch.autograd.Function):
    """The mean of a loss over rows, in chunks whose float32 copies do not outlive them."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, chunks: _Chunks, *targets: Tensor) -> Tensor:
        ctx.save_for_backward(logits, *targets)
        ctx.chunks = chunks
        total = torch.zeros((), dtype=_wide(logits.dtype), device=logits.device)
        for part, rows in zip(chunks.views(logits), chunks.rows(targets), strict=True):
            total += chunks.row_loss(part.to(total.dtype), *rows).sum()
        return total / (logits.shape[0] * chunks.num_positions)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, *targets = ctx.saved_tensors
        chunks: _Chunks = ctx.chunks
        scale = grad / (logits.shape[0] * chunks.num_positions)
        result = torch.zeros_like(logits)
        parts = chunks.views(logits), chunks.rows(targets), chunks.views(result)
        for part, rows, out in zip(*parts, strict=True):
            with torch.enable_grad():
                wide = part.detach().to(_wide(logits.dtype)).requires_grad_()
                loss = chunks.row_loss(wide, *rows).sum()
            (of_part,) = torch.autograd.grad(loss, wide)
            out.copy_(of_part * scale)
        return (result, None, *(None for _ in targets))


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
