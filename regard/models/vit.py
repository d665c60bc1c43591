"""ViT: "An Image is Worth 16x16 Words" (Dosovitskiy et al., 2021), figure 1; DeiT (Touvron et al., 2021), figure 2.

    image (B, C, height, width)
     | cut into patches of P x P pixels, each mapped to a vector              (eq. 1)
    [class] [distillation] patch patch patch ...        + positions           (both extra tokens are optional)
     |
    [ self-attention, every patch sees every patch ]
    [ feed-forward                                 ] x layers               (eq. 2-3: the Transformer's, pre-norm, GELU)
     | norm
    hidden (B, T, M)  --- class token, or the mean over the patches --->  summaries (B, M) each   (eq. 4, appendix D.3)

A learned position belongs to a patch of a grid; an image of another size has another grid, onto which the positions are
interpolated (section 3.2). Sinusoids in two dimensions say the row in one half of the width, the column in the other.

Site: `encoder.{layer}.self`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import UserError
from regard.models.base import ImageEncoder, last
from regard.models.transformer import EncoderLayer, Style
from regard.nn.attention import ScoreName
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, NormPlacement, Stack
from regard.nn.positions import sinusoid
from regard.nn.record import Recording

GridPositions = Literal["learned", "sinusoid", "none"]


class VitConfig(ModelConfig):
    """Table 1 of the paper; tiny and small are DeiT's (table 1 there), micro is for small images on a laptop."""

    kind: Literal["vit"] = "vit"
    image: int = Field(default=224, ge=1, description="side of the images that it is trained on, in pixels")
    patch: int = Field(default=16, ge=1, description="side of a patch, in pixels")
    channels: Literal[1, 3] = Field(default=3, description="1 = grey, 3 = red, green, blue")
    layers: int = Field(default=12, ge=1)
    width: int = Field(default=768, ge=1)
    inner: int = Field(default=3072, ge=1)
    heads: int = Field(default=12, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    activation: Activation = "gelu"
    norm: NormPlacement = "pre"
    norm_epsilon: float = Field(default=1e-6, gt=0)
    score: ScoreName = "scaled-dot"
    positions: GridPositions = "learned"
    summary: Literal["class", "mean"] = Field(default="class", description="a class token, or the mean over patches")
    distillation: Literal["none", "token", "head"] = Field(
        default="none", description="DeiT's second token: none, a token only, or one with a head of its own"
    )

    @model_validator(mode="after")
    def _sizes_fit(self) -> VitConfig:
        if self.image < self.patch:
            raise ValueError(f"patch = {self.patch}: must be at most image = {self.image} (try patch = 4)")
        if self.positions == "sinusoid" and self.width % 4:
            raise ValueError(f"width = {self.width}: must be a multiple of 4 for sinusoids in two dimensions")
        return self

    @property
    def grid(self) -> int:
        """Patches on each side of the image."""
        return self.image // self.patch

    @property
    def extra(self) -> list[str]:
        """The tokens before the patches."""
        return ["[class]"] * (self.summary == "class") + ["[distillation]"] * (self.distillation != "none")


SIZES: dict[str, dict[str, object]] = {
    "micro": {"image": 32, "patch": 4, "layers": 6, "width": 128, "inner": 256, "heads": 4},
    "tiny": {"layers": 12, "width": 192, "inner": 768, "heads": 3},
    "small": {"layers": 12, "width": 384, "inner": 1536, "heads": 6},
    "base": {"layers": 12, "width": 768, "inner": 3072, "heads": 12},
    "large": {"layers": 24, "width": 1024, "inner": 4096, "heads": 16},
}


class Patches(nn.Module):
    """Images (B, C, height, width) -> patches (B, rows · columns, M): eq. 1's E, kept in the shape of a convolution.

    Cutting and one matrix product are the same as a convolution whose stride is its size.
    """

    def __init__(self, channels: int, patch: int, width: int) -> None:
        super().__init__()
        self.patch = patch
        self.weight = nn.Parameter(torch.randn(width, channels, patch, patch) * (channels * patch * patch) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, images: Tensor) -> Tensor:
        rows, columns = images.shape[2] // self.patch, images.shape[3] // self.patch
        whole = images[:, :, : rows * self.patch, : columns * self.patch]  # pixels beyond the last patch are left out
        cut = whole.reshape(len(images), -1, rows, self.patch, columns, self.patch)  # (B, C, rows, P, columns, P)
        flat = cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (B, rows · columns, C · P · P)
        return F.linear(flat, self.weight.flatten(1), self.bias)


class Vit(ImageEncoder):
    def __init__(self, config: VitConfig, vocabulary: int = 0) -> None:  # images have no vocabulary
        super().__init__()
        self.config, self.width, self.extra_tokens = config, config.width, config.extra
        width, extra = config.width, len(config.extra)
        self.patches = Patches(config.channels, config.patch, width)
        self.class_token = nn.Parameter(torch.empty(1, 1, width)) if config.summary == "class" else None
        self.distillation_token = nn.Parameter(torch.empty(1, 1, width)) if "[distillation]" in config.extra else None
        self.positions: Tensor | None = None
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(1, extra + config.grid**2, width))
        self.dropout = Dropout(config.dropout)
        style = Style(inner_dropout=config.dropout)  # after every dense layer (section B.1)
        self.encoder = Stack[EncoderLayer](EncoderLayer(config, style) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(width, config.norm_epsilon) if config.norm == "pre" else nn.Identity()
        for tokens in (self.class_token, self.distillation_token, self.positions):
            if tokens is not None:
                nn.init.normal_(tokens, std=0.02)

    def forward(self, images: Tensor, *, record: Recording | None = None) -> Tensor:
        return last(self.each_layer(images, record))

    def each_layer(self, images: Tensor, record: Recording | None = None) -> Iterator[Tensor]:
        """The embeddings, the output of every layer, and the last one normed: (B, T, M) each."""
        x = self.embed(images)
        yield x
        for index, layer in enumerate(self.encoder):
            x = layer(x, None, record, f"encoder.{index}")
            yield x
        yield self.final_norm(x)

    def embed(self, images: Tensor) -> Tensor:
        """Eq. 1: (B, C, height, width) -> (B, T, M)."""
        self._check(images)
        patches = self.patches(images)
        extra = [token for token in (self.class_token, self.distillation_token) if token is not None]
        x = torch.cat([*(token.expand(len(images), -1, -1) for token in extra), patches], dim=1)
        rows, columns = self.grid_of(images)
        embedded: Tensor = self.dropout(x + self._positions(rows, columns, x))
        return embedded

    def summaries(self, hidden: Tensor) -> list[Tensor]:
        extra = len(self.config.extra)
        first = hidden[:, 0] if self.config.summary == "class" else hidden[:, extra:].mean(dim=1)
        return [first, hidden[:, extra - 1]] if self.config.distillation == "head" else [first]

    def grid_of(self, images: Tensor) -> tuple[int, int]:
        return images.shape[2] // self.config.patch, images.shape[3] // self.config.patch

    def _positions(self, rows: int, columns: int, x: Tensor) -> Tensor:
        """(1, T, M) for a grid of so many patches."""
        extra, grid, width = len(self.config.extra), self.config.grid, self.config.width
        if self.config.positions == "none":
            return x.new_zeros(1, 1, width)
        if self.positions is None:
            table = grid_sinusoid(rows, columns, width).to(x)
            return torch.cat([table.new_zeros(extra, width), table])[None]
        if (rows, columns) == (grid, grid):
            return self.positions
        return stretched(self.positions, extra, rows, columns)

    def _check(self, images: Tensor) -> None:
        channels, height, width = images.shape[1:]
        if channels != self.config.channels:
            raise UserError(f"an image of {channels} channels: this model reads {self.config.channels}")
        if min(height, width) < self.config.patch:
            raise UserError(f"an image of {height} x {width} pixels: smaller than one patch ({self.config.patch})")


def stretched(positions: Tensor, extra: int, rows: int, columns: int) -> Tensor:
    """Learned positions (1, extra + grid · grid, M) for another grid, by interpolation (section 3.2)."""
    grid = math.isqrt(positions.shape[1] - extra)
    square = positions[:, extra:].unflatten(1, (grid, grid)).permute(0, 3, 1, 2)  # (1, M, grid, grid)
    found = F.interpolate(square, size=(rows, columns), mode="bicubic", align_corners=False)
    return torch.cat([positions[:, :extra], found.flatten(2).transpose(1, 2)], dim=1)


def grid_sinusoid(rows: int, columns: int, width: int) -> Tensor:
    """The sinusoids of the row in the first half of the width, of the column in the second: (rows · columns, width)."""
    down = sinusoid(rows, width // 2)[:, None].expand(-1, columns, -1)
    across = sinusoid(columns, width // 2)[None].expand(rows, -1, -1)
    return torch.cat([down, across], dim=-1).flatten(0, 1)
