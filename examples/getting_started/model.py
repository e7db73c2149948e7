"""A GPT: a decoder-only transformer with pre-normalization, in plain PyTorch."""

import torch
from torch import nn
from torch.nn import functional

# The number of embedding rows is a multiple of this, for which GPUs have fast matrix products.
_VOCAB_MULTIPLE = 64


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        if width % num_heads:
            raise ValueError(f"width {width} is not a multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Returns the attention output for ``x``, of shape ``(rows, tokens, width)``; see `GPT.forward`."""
        rows, tokens, width = x.shape
        heads = self.inputs(x).view(rows, tokens, 3 * self.num_heads, -1).transpose(1, 2)
        query, key, value = heads.chunk(3, dim=1)
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None
        )
        return self.output(attended.transpose(1, 2).reshape(rows, tokens, width))


class Block(nn.Module):
    """One layer: attention and a feed-forward network, each added to its input."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, bias=False)
        self.attention = Attention(width, num_heads)
        self.feed_forward_norm = nn.LayerNorm(width, bias=False)
        self.widen = nn.Linear(width, 4 * width, bias=False)
        self.narrow = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Returns ``x`` with both outputs added."""
        x = x + self.attention(self.attention_norm(x), mask)
        return x + self.narrow(functional.gelu(self.widen(self.feed_forward_norm(x))))


class GPT(nn.Module):
    """Token and position embeddings, layers, and logits from the token embeddings (tied weights).

    Args:
        vocab_size: The number of ids; there are logits for a few more.
        context_length: The maximum length of a sequence.
        num_layers: The number of layers.
        width: The size of a token's hidden state.
        num_heads: The number of attention heads of a layer, which divide the width.
    """

    def __init__(
        self, *, vocab_size: int, context_length: int, num_layers: int, width: int, num_heads: int
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.context_length = context_length
        num_rows = -(-vocab_size // _VOCAB_MULTIPLE) * _VOCAB_MULTIPLE
        self.tokens = nn.Embedding(num_rows, width)
        self.positions = nn.Embedding(context_length, width)
        blocks = [Block(width, num_heads) for _ in range(num_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width, bias=False)
        self.apply(_initialise)
        # Residual outputs are scaled down, so that their sum does not grow with the number of layers.
        for block in blocks:
            for layer in (block.attention.output, block.narrow):
                nn.init.normal_(layer.weight, std=0.02 / (2 * num_layers) ** 0.5)

    def forward(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns logits of shape ``(rows, tokens, ids)``.

        Args:
            input_ids: Token ids of shape ``(rows, tokens)``.
            position_ids: Positions of the same shape. Default: 0, 1, 2, … in each row.
            mask: Bool tensor of shape ``(rows, tokens, tokens)``: which positions each input may attend to.
                Default: itself and all before it.
        """
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.tokens(input_ids) + self.positions(position_ids)
        for block in self.blocks:
            x = block(x, None if mask is None else mask.unsqueeze(1))
        return functional.linear(self.norm(x), self.tokens.weight)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
