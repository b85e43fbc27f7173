"""Tensor operations of the network; three carry a gradient written by hand, which saves most of the cost."""

from collections.abc import Iterable
from functools import cache, partial, reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def check_range(ids: Tensor, size: int, name: str, hint: str = ""):
    """Says what is wrong where an index error would not; only where looking costs nothing."""
    if ids.numel() == 0 or ids.device.type != "cpu" or torch.compiler.is_compiling():
        return
    least, most = (bound.item() for bound in ids.aminmax())
    if least < 0 or most >= size:
        wrong = least if least < 0 else most
        raise ValueError(
            f"`{name}` holds {wrong}, but this model has ids from 0 to {size - 1}. {hint}".rstrip()
        )


def add_all(tensors: Iterable[Tensor]) -> Tensor:
    """The sum of one or more tensors."""
    return reduce(torch.add, tensors)


def gather_text(states: Tensor, order: Tensor) -> Tensor:
    """Picks text positions: `(batch, text, dim)` by `(batch, text)`."""
    batch, text, dim = states.shape
    rows = order + text * torch.arange(batch, device=order.device).unsqueeze(1)
    return states.reshape(batch * text, dim).index_select(0, rows.flatten()).view(batch, text, dim)


def run_lstm(lstm: nn.Module, states: Tensor) -> Tensor:
    """What an LSTM makes of `(batch, text, dim)`, in the type of autocast or, where that fails, its own."""
    if states.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        if not has_cpu_lstm(torch.get_autocast_dtype("cpu")):
            with torch.autocast("cpu", enabled=False):
                return lstm(states.to(next(lstm.parameters()).dtype))[0]
    return lstm(states)[0]


@torch.compiler.assume_constant_result
def has_cpu_lstm(dtype: torch.dtype) -> bool:
    """Whether autocast to this type can train an LSTM on this processor.

    Autocast hands the LSTM to oneDNN, which has no half-precision one for processors without AVX-512 and then
    raises. Only trying tells: what PyTorch says of the processor does not say what oneDNN may use of it.
    """
    return _try_cpu_lstm(dtype)


@cache
def _try_cpu_lstm(dtype: torch.dtype) -> bool:
    zeros = partial(torch.zeros, dtype=torch.float32, device="cpu")
    weights = [zeros(shape, requires_grad=True) for shape in ((32, 8), (32, 8), (32,), (32,))]
    start = zeros((1, 1, 8))
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", dtype):
            output, *_ = torch.lstm(start, (start, start), weights, True, 1, 0.0, True, False, True)
        output.sum().backward()
    except RuntimeError:
        return False
    return True


def build_adjacency(edges: Tensor, labels: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """`D^-½ (A + I) D^-½` of an undirected graph, row by row.

    Returns:
        The column of each entry, where each row starts, and the entries.
    """
    itself = torch.arange(labels, device=edges.device)
    rows = torch.cat([edges[0], edges[1], itself])
    columns = torch.cat([edges[1], edges[0], itself])
    degree = torch.zeros_like(itself).index_add(0, rows, torch.ones_like(rows))
    scale = degree.to(torch.promote_types(dtype, torch.float32)).rsqrt()
    order = rows.argsort()
    rows, columns = rows[order], columns[order]
    return columns, degree.cumsum(0) - degree, (scale[rows] * scale[columns]).to(dtype)


class SpreadOverGraph(torch.autograd.Function):
    """A symmetric sparse matrix times label features `(labels, dim)`.

    The matrix is its own transpose, so the gradient is the same product. As weighted bags of rows it takes a
    sixth of the time of adding along edges, and works in every float type.
    """

    @staticmethod
    def forward(ctx, features: Tensor, columns: Tensor, starts: Tensor, entries: Tensor) -> Tensor:
        entries = entries.to(features.dtype)
        ctx.save_for_backward(columns, starts, entries)
        return F.embedding_bag(columns, features, starts, mode="sum", per_sample_weights=entries)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        columns, starts, entries = ctx.saved_tensors
        grad = F.embedding_bag(columns, grad.contiguous(), starts, mode="sum", per_sample_weights=entries)
        return grad, None, None, None


class ScoreAndGatherLabels(torch.autograd.Function):
    """`means · keysᵀ` for every label, and the keys of some: their gradients meet in one tensor."""

    @staticmethod
    def forward(ctx, keys: Tensor, means: Tensor, label_ids: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(keys, means, label_ids)
        return means @ keys.T, F.embedding(label_ids, keys)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_scores: Tensor, grad_gathered: Tensor):
        keys, means, label_ids = ctx.saved_tensors
        grad_scores = grad_scores.to(keys.dtype)
        grad_keys = grad_scores.T @ means
        grad_keys.index_add_(0, label_ids.flatten(), grad_gathered.reshape(-1, keys.shape[1]))
        return grad_keys, grad_scores @ keys, None


def word_scores(states: Tensor, keys: Tensor) -> Tensor:
    """`s = h · v` for each label and word: `(batch, labels, text)`.

    Args:
        states: `(batch, text, dim)`.
        keys: `(batch, labels, dim)`, or `(labels, dim)` where all articles share them.
    """
    if keys.dim() == 3:
        return keys @ states.transpose(1, 2)
    batch, text, dim = states.shape
    return (keys @ states.reshape(batch * text, dim).T).view(len(keys), batch, text).transpose(0, 1)


def attention_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the words of each text; all zero for an empty text."""
    mask = mask.unsqueeze(1)
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask


class AttendedScore(torch.autograd.Function):
    """`y = Σ_t p_t s_t` with `p = softmax(s)`, for which `∂y/∂s_t = p_t (1 + s_t − y)`.

    That one tensor is all the backward pass needs of shape `(batch, labels, text)`.
    """

    @staticmethod
    def forward(ctx, states: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
        # To spare passes over large tensors an empty text stays whole in them and becomes zero at the end.
        filled = mask.any(1, keepdim=True)
        scores = word_scores(states, keys)
        scores = scores.masked_fill(~(mask | ~filled).unsqueeze(1), torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        if not any(ctx.needs_input_grad):
            return scores.mul_(weights).sum(-1) * filled
        attended = (weights * scores).sum(-1) * filled
        slope = weights.mul_(scores.add_(1 - attended.unsqueeze(-1)))
        ctx.save_for_backward(states, keys, filled, slope)
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        states, keys, filled, slope = ctx.saved_tensors
        grad_scores = (slope * (grad * filled).unsqueeze(-1)).to(states.dtype)
        if keys.dim() == 3:
            return grad_scores.transpose(1, 2) @ keys, None, grad_scores @ states
        batch, text, dim = states.shape
        grad_scores = grad_scores.transpose(0, 1).reshape(len(keys), batch * text)
        grad_states = (grad_scores.T @ keys).view(batch, text, dim)
        return grad_states, None, grad_scores @ states.reshape(batch * text, dim)


def attended_score(states: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
    """Score of each label for each text, `(batch, labels)`; shapes as in `word_scores`."""
    return AttendedScore.apply(states, mask, keys.to(states.dtype))


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the words of a text: what a label outside the mask attends to, as its key is zero."""
    return states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


__all__ = [
    "ScoreAndGatherLabels",
    "SpreadOverGraph",
    "attended_score",
    "attention_weights",
    "build_adjacency",
    "check_range",
    "gather_text",
    "mean_state",
    "word_scores",
]
