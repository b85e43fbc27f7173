"""Binary cross-entropy over all labels, over the candidates, or over candidates and sampled others."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .configuration_kenmesh import KenMeSHConfig
from .functional_kenmesh import check_range


def label_loss(
    config: KenMeSHConfig,
    logits: Tensor,
    labels: Tensor,
    candidates: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """The mean over the labels that `loss_labels` names; without candidates, over all.

    Args:
        config: Says which labels count.
        logits: `(batch, labels)`.
        labels: Gold label ids `(batch, gold)`; anything negative is padding.
        candidates: Their ids `(batch, candidates)`, and True at real ones.
    """
    check_range(labels.clamp(min=0), config.num_labels, "labels")
    gold = multi_hot(labels, labels >= 0, config.num_labels)
    if config.loss_labels == "all" or candidates is None:
        return F.binary_cross_entropy_with_logits(logits.float(), gold.float())
    candidate_ids, candidate_mask = candidates
    if config.loss_labels == "candidates":
        logits, gold = logits.gather(1, candidate_ids), gold.gather(1, candidate_ids)
        counted = candidate_mask
    else:
        sampled = torch.randint(
            config.num_labels, (len(logits), config.num_sampled_negatives), device=logits.device
        )
        counted = gold | multi_hot(candidate_ids, candidate_mask, config.num_labels)
        counted = counted.scatter(1, sampled, True)
    losses = F.binary_cross_entropy_with_logits(logits.float(), gold.float(), reduction="none")
    return (losses * counted).sum() / counted.sum().clamp(min=1)


def multi_hot(ids: Tensor, mask: Tensor, size: int) -> Tensor:
    """Ragged ids `(batch, ids)` → booleans `(batch, size)`; padding goes to a column that is cut off."""
    empty = torch.zeros(len(ids), size + 1, dtype=torch.bool, device=ids.device)
    return empty.scatter(1, ids.masked_fill(~mask, size), True)[:, :size]


__all__ = ["label_loss"]
