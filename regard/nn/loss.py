"""The label-smoothed loss of an output projection, without ever holding the logits of a whole batch.

Half of a small translator's step is the output softmax. `projected_loss` walks over the rows in chunks, and forms the
gradients of each chunk while its logits are still in cache; nothing of size (rows, vocabulary) survives the chunk.
`plain_loss` is the same in three lines, and a test says that both agree.

Below: what a student learns from its teacher.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.products import by_onednn, product, transposed_product

CHUNK = 256
LEAST = 1e-30
"""A probability below it counts as it, or the loss could be infinite; its gradient is exact all the same."""


def plain_loss(hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float) -> Tensor:
    """Sum over rows of (1-ε)·(-log p(y)) + ε·mean_v(-log p(v))  (Szegedy 2016; Vaswani 2017, section 5.4)."""
    logits = F.linear(hidden, weight, bias)  # (N, V)
    return F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)


def projected_loss(hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float) -> Tensor:
    """As `plain_loss`, for hidden (N, M), weight (V, M), target (N,)."""
    if not torch.is_grad_enabled():
        parts = zip(hidden.split(CHUNK), target.split(CHUNK), strict=True)
        return torch.stack([plain_loss(part, weight, bias, answer, smoothing) for part, answer in parts]).sum()
    loss: Tensor = _ProjectedLoss.apply(hidden, weight, bias, target, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
    ) -> Tensor:
        if torch.is_autocast_enabled(hidden.device.type):
            kind = torch.get_autocast_dtype(hidden.device.type)
            hidden, weight, bias = hidden.to(kind), weight.to(kind), None if bias is None else bias.to(kind)
        grad_hidden = torch.empty_like(hidden)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        room = weight.new_empty(min(CHUNK, len(hidden)) * len(weight))
        uniform, weight_sum, hidden_sum = smoothing / len(weight), weight.float().sum(dim=0), hidden.float().sum(dim=0)
        # -(1-ε) log p(y) - ε mean log p = Z - (1-ε) z_y - ε mean z, and mean z = h · mean W + mean b. What the last
        # gives to the weights is what their sums begin with; over chunks, those lose too much in bfloat16.
        loss -= uniform * (hidden_sum * weight_sum).sum()  # a product under autocast would round it
        begin = hidden_sum * -uniform
        by_columns = by_onednn(hidden)  # in memory it is (M, V) where oneDNN forms it so
        grad_weight = begin[:, None].repeat(1, len(weight)).t() if by_columns else begin.repeat(len(weight), 1)
        grad_bias = None
        if bias is not None:
            loss -= uniform * len(hidden) * bias.float().sum()
            grad_bias = torch.full_like(bias, -uniform * len(hidden), dtype=torch.float32)
        for rows in range(0, len(hidden), CHUNK):
            part, answer = hidden[rows : rows + CHUNK], target[rows : rows + CHUNK, None]
            logits = _logits(part, weight, bias, room)
            chosen = logits.gather(1, answer)
            p = torch.softmax(logits, dim=1, out=logits)  # in place
            likely = p.gather(1, answer)
            partition = chosen.float() - likely.float().clamp_min(LEAST).log()  # Z = z - log p, of the answer
            loss += (partition - (1 - smoothing) * chosen).sum()
            # d loss / d logits = p - (1-ε)·onehot - ε/V; the last is added to sums, not here
            grad = p.scatter_(1, answer, likely - (1 - smoothing))
            _multiply_back(grad, part, weight, grad_hidden[rows : rows + CHUNK], grad_weight)
            grad_hidden[rows : rows + CHUNK].sub_(uniform * weight_sum)
            if grad_bias is not None:
                grad_bias += grad.sum(dim=0)
        ctx.save_for_backward(grad_hidden, grad_weight.contiguous(), grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (scale,) = grads
        return *(None if grad is None else grad * scale for grad in ctx.saved_tensors), None, None


def _logits(inputs: Tensor, weight: Tensor, bias: Tensor | None, room: Tensor) -> Tensor:
    """x W' + b, (chunk, V). It takes the place of the chunk before: new memory for every chunk would cost as much as a
    pass over it."""
    if by_onednn(inputs):
        return product(inputs, weight, bias)
    room = room[: len(inputs) * len(weight)].view(len(inputs), -1)
    if bias is not None and room.dtype != torch.float32:  # rounded once
        return torch.addmm(bias, inputs, weight.t(), out=room)
    logits = torch.mm(inputs, weight.t(), out=room)
    return logits if bias is None else logits.add_(bias)


def _multiply_back(grad: Tensor, part: Tensor, weight: Tensor, to_hidden: Tensor, to_weight: Tensor) -> None:
    """What the gradient of a chunk's logits (chunk, V) gives to its rows, and adds to the weight's."""
    if by_onednn(part):
        to_hidden.copy_(product(grad, weight.t()))
        to_weight += transposed_product(grad, part)
        return
    torch.mm(grad, weight, out=to_hidden)
    if grad.dtype == torch.float32:
        to_weight.addmm_(grad.t(), part)
    else:
        to_weight += grad.t() @ part


def soft_loss(logits: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Sum over rows of T² · KL(teacher || student), both softened by T  (Hinton 2015, section 2).

    T² keeps the size of the gradients, which softening divides by it: (N, V), (N, V).
    """
    expected = F.log_softmax(teacher / temperature, dim=-1)
    found = F.log_softmax(logits / temperature, dim=-1)
    return F.kl_div(found, expected, reduction="sum", log_target=True) * temperature**2


def direction_loss(hidden: Tensor, teacher: Tensor) -> Tensor:
    """Sum over rows of 1 - cos(student, teacher)  (Sanh 2019, section 2): (N, M), (N, M)."""
    return (1 - F.cosine_similarity(hidden, teacher, dim=-1)).sum()


def distillation_loss(
    logits: Tensor, teacher: Tensor, target: Tensor, hidden: Tensor, teacher_hidden: Tensor, temperature: float = 2.0
) -> Tensor:
    """What DistilBERT learned from: what its teacher expects, the words themselves, and the direction of its teacher's
    vectors; their means are weighed 5 : 2 : 1 as in its published training, times N.

    Hidden words: (N, V), (N, V), (N,). All tokens: (R, M), (R, M).
    """
    words = F.cross_entropy(logits, target, reduction="sum")
    direction = direction_loss(hidden, teacher_hidden) * len(target) / len(hidden)
    return 5 * soft_loss(logits, teacher, temperature) + 2 * words + direction
