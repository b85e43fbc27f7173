"""Beyond the paper: the evidence that comes with a candidate joins the score of the network."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .configuration_kenmesh import KenMeSHConfig

# Standardised numbers are cut here: a few have long tails, which a network would follow too far.
LARGEST = 8.0


class KenMeSHEvidence(nn.Module):
    """What the numbers of a candidate (votes, journal share, lexical hits) add to its logit.

    A linear function, and beside it a small network that also sees the score of the large one.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        features, hidden = config.num_evidence_features, config.evidence_hidden_size
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.linear = nn.Linear(features, 1)
        self.hidden = nn.ModuleList(
            [nn.Linear(features + 1, hidden), nn.Linear(hidden, hidden)] if hidden else []
        )
        self.output = nn.Linear(hidden, 1, bias=False) if hidden else None
        self.score_scale = nn.Parameter(torch.ones(()))

    def forward(self, network_score: Tensor, candidate_features: Tensor | None) -> Tensor:
        """`(batch, candidates)` and `(batch, candidates, features)` → logits `(batch, candidates)`."""
        if candidate_features is None:
            raise ValueError(
                "This model weighs evidence: pass `candidate_features` beside `candidate_ids` (the processor "
                "makes both)."
            )
        numbers = ((candidate_features.float() - self.mean) / self.std).clamp(-LARGEST, LARGEST)
        numbers = numbers.to(network_score.dtype)
        network_score = network_score * self.score_scale
        logits = network_score + self.linear(numbers).squeeze(-1)
        if self.output is not None:
            joint = torch.cat([numbers, network_score.unsqueeze(-1)], dim=-1)
            for layer in self.hidden:
                joint = F.gelu(layer(joint))
            logits = logits + self.output(joint).squeeze(-1)
        return logits


__all__ = ["KenMeSHEvidence"]
