"""Beyond the paper: the evidence that comes with a candidate joins the score of the network."""

import torch
from torch import Tensor, nn

from .configuration_kenmesh import KenMeSHConfig


class KenMeSHEvidence(nn.Module):
    """What the numbers of a candidate (votes, journal share, lexical hits) add to its logit."""

    def __init__(self, config: KenMeSHConfig):
        super().__init__()
        features, hidden = config.num_evidence_features, config.evidence_hidden_size
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.linear = nn.Linear(features, 1)
        self.hidden = nn.Linear(features + 1, hidden) if hidden else None
        self.output = nn.Linear(hidden, 1, bias=False) if hidden else None
        self.score_scale = nn.Parameter(torch.ones(()))

    def forward(self, network_score: Tensor, candidate_features: Tensor | None) -> Tensor:
        """`(batch, candidates)` and `(batch, candidates, features)` → logits `(batch, candidates)`."""
        if candidate_features is None:
            raise ValueError(
                "This model weighs evidence: pass `candidate_features` beside `candidate_ids` (the processor "
                "makes both)."
            )
        numbers = ((candidate_features.float() - self.mean) / self.std).to(network_score.dtype)
        network_score = network_score * self.score_scale
        logits = network_score + self.linear(numbers).squeeze(-1)
        if self.hidden is not None:
            joint = torch.cat([numbers, network_score.unsqueeze(-1)], dim=-1)
            logits = logits + self.output(torch.tanh(self.hidden(joint))).squeeze(-1)
        return logits


__all__ = ["KenMeSHEvidence"]
