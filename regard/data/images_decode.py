"""From a file to pixels: decoded by Pillow, turned upright, in grey or RGB, fitted into a square.

`Framing` holds all that a trained model must be shown images by; it is kept with the run as plain JSON.
"""

from __future__ import annotations

import base64
import contextlib
import io
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from regard.data.badlines import Reason
from regard.data.images import Content
from regard.errors import UserError

Fit = Literal["crop", "squash"]
Resample = Literal["nearest", "bilinear", "bicubic", "lanczos"]
MOST_PIXELS = 2**28
"""An image of more pixels is not decoded: a file of a few kilobytes can claim to be larger than memory."""


class Unreadable(Exception):  # noqa: N818 - it is counted, and the reading goes on
    """A file that holds no usable image."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason: Reason = reason


@dataclass(frozen=True)
class Framing:
    """How images are shown to a model.

    An image becomes a square of `stored` pixels, by cutting the middle out (`crop`) or by changing its proportions
    (`squash`); of that square the middle `size` pixels are seen, as (x / 255 - mean) / deviation for each channel.
    """

    size: int
    stored: int
    channels: int
    fit: Fit = "crop"
    resample: Resample = "bilinear"
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Framing:
        """From what `facts` gives, among others."""
        own = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        return cls(**{**own, "mean": tuple(facts["mean"]), "deviation": tuple(facts["deviation"])})

    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "mean": list(self.mean), "deviation": list(self.deviation)}

    def pixels(self, content: Content) -> NDArray[np.uint8]:
        """(stored, stored, channels)."""
        image = decode(content, self.channels)
        if image.size != (self.stored, self.stored):
            width, height = image.size
            box: tuple[float, float, float, float] | None = None
            if self.fit == "crop":  # cut and scaled at once: a thin strip never becomes a huge image
                side = min(width, height)
                left, top = (width - side) / 2, (height - side) / 2
                box = (left, top, left + side, top + side)
            image = image.resize((self.stored, self.stored), Image.Resampling[self.resample.upper()], box=box)
        return np.asarray(image, np.uint8).reshape(self.stored, self.stored, self.channels)

    def middle(self, images: Tensor) -> Tensor:
        """(B, C, stored, stored) -> (B, C, size, size)."""
        first = (self.stored - self.size) // 2
        return images[:, :, first : first + self.size, first : first + self.size]

    def normalised(self, images: Tensor) -> Tensor:
        """Values from 0 to 1 (B, C, ...) -> what the model sees."""
        mean, deviation = (torch.tensor(values).view(-1, 1, 1) for values in (self.mean, self.deviation))
        return (images - mean) / deviation

    def shown(self, pixels: NDArray[np.uint8]) -> Tensor:
        """Stored pixels (B, stored, stored, C) -> what the model sees: (B, C, size, size)."""
        return self.normalised(self.middle(as_tensor(pixels)).float() / 255)


def as_tensor(pixels: NDArray[np.uint8]) -> Tensor:
    """(B, height, width, C) -> (B, C, height, width), still bytes."""
    return torch.from_numpy(np.array(pixels.transpose(0, 3, 1, 2), order="C"))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without Pillow's warnings of odd metadata, which the pixels do not depend on. Not for several threads at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def decode(content: Content, channels: int) -> Image.Image:
    """Upright, in grey (1 channel) or RGB (3); what is transparent becomes white. Of an animation the first picture."""
    if isinstance(content, np.ndarray):
        if content.ndim not in (2, 3) or content.shape[2:] not in ((), (1,), (3,), (4,)):
            raise Unreadable("image", f"its pixels are {content.shape}; height, width, and 1, 3 or 4 channels are read")
        if content.dtype != np.uint8:
            raise Unreadable("image", f"its pixels are {content.dtype}; bytes from 0 to 255 (uint8) are read")
        return _in_channels(Image.fromarray(content.squeeze(-1) if content.shape[2:] == (1,) else content), channels)
    if isinstance(content, Image.Image):
        return _in_channels(ImageOps.exif_transpose(content), channels)
    try:
        with Image.open(io.BytesIO(content) if isinstance(content, bytes) else content) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise Unreadable("pixels", f"{width:,} x {height:,} pixels, at most {MOST_PIXELS:,} are decoded")
            image.load()
            return _in_channels(ImageOps.exif_transpose(image), channels)
    except UnidentifiedImageError:
        raise Unreadable("image", "not an image in a known format") from None
    except Image.DecompressionBombError as problem:
        raise Unreadable("pixels", str(problem)) from None
    except FileNotFoundError:
        raise Unreadable("missing", "there is no such file") from None
    except IsADirectoryError:
        raise Unreadable("missing", "it is a folder; name its files") from None
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, IndexError, KeyError) as problem:
        raise Unreadable("image", str(problem) or type(problem).__name__) from None


def _in_channels(image: Image.Image, channels: int) -> Image.Image:
    if image.mode in ("I", "I;16", "I;16B", "I;16L", "F"):  # 16 bits, or numbers: to the range of a byte
        values = np.asarray(image, np.float32)
        most = 65535 if image.mode != "F" else max(1.0, float(values.max(initial=0)))
        image = Image.fromarray((values.clip(0, most) * (255 / most)).round().astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if channels == 1 else "RGB")


def from_data_uri(text: str) -> bytes:
    """The picture that a text is: `data:image/png;base64,...`, as pages and programs send one."""
    head, _, data = text.partition(";base64,")
    if not head.startswith("data:image/"):
        raise UserError(f"picture = {text[:40]!r}: must be sent as data:image/png;base64,...")
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        raise UserError("the picture was not sent whole; try again") from None
