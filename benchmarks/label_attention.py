"""Label attention over candidates against the dense formula of the paper, at the size of the real MeSH.

The dense side is the published formula as it stands: attention of every label over every word with the keys
of non-candidates set to zero, a context vector for each article and label, its product with the label vector.
"""

import json
from functools import partial

import torch
from _measure import measure_costs, parse_arguments
from torch import Tensor

from kenmesh_hf.modeling.functional_kenmesh import ScoreAndGatherLabels, attended_score, mean_state


def dense(states: Tensor, mask: Tensor, keys: Tensor, candidate_ids: Tensor) -> Tensor:
    """Eqs. 5 and 6 written out: `(batch, text, dim)`, `(labels, dim)` → `(batch, labels)`."""
    chosen = torch.zeros(len(states), len(keys), 1).scatter(1, candidate_ids.unsqueeze(-1), 1.0)
    scores = states @ (keys * chosen).transpose(1, 2)
    weights = scores.masked_fill(~mask.unsqueeze(-1), float("-inf")).softmax(1)
    contexts = weights.transpose(1, 2) @ states
    return (contexts * keys).sum(-1)


def ours(states: Tensor, mask: Tensor, keys: Tensor, candidate_ids: Tensor) -> Tensor:
    """The same scores by the two identities, as in `KenMeSHForMeSHIndexing`."""
    others, candidate_keys = ScoreAndGatherLabels.apply(keys, mean_state(states, mask), candidate_ids)
    return others.scatter(1, candidate_ids, attended_score(states, mask, candidate_keys))


def main():
    args = parse_arguments(__doc__, batch=8, text=200, labels=28_415, candidates=1_500, dim=400)
    states = torch.randn(args.batch, args.text, args.dim)
    lengths = torch.randint(args.text // 2, args.text + 1, (args.batch, 1))
    mask = torch.arange(args.text) < lengths
    states = (states * mask.unsqueeze(-1) * 0.1).requires_grad_()
    keys = (torch.randn(args.labels, args.dim) * 0.1).requires_grad_()
    candidate_ids = torch.stack([torch.randperm(args.labels)[: args.candidates] for _ in range(args.batch)])
    inputs = (states, mask, keys, candidate_ids)
    direction = torch.randn(args.batch, args.labels)

    def forward(score):
        with torch.no_grad():
            return score(*inputs)

    def step(score):
        text, labels = torch.autograd.grad(score(*inputs), (states, keys), direction)
        return text * mask.unsqueeze(-1), labels

    both = {"dense": dense, "ours": ours}
    difference = (forward(dense) - forward(ours)).abs().max().item()
    gradient_pairs = zip(step(dense), step(ours), strict=True)
    gradient_difference = max((one - other).abs().max().item() for one, other in gradient_pairs)
    forwards = {name: partial(forward, score) for name, score in both.items()}
    steps = {name: partial(step, score) for name, score in both.items()}
    costs = measure_costs("forward", forwards, steps, args.repeats)
    result = {
        "benchmark": "label_attention",
        "ratio_forward": round(costs.forward["dense"] / costs.forward["ours"], 1),
        "ratio_step": round(costs.step["dense"] / costs.step["ours"], 1),
        "memory_ratio": round(costs.memory["dense"] / max(costs.memory["ours"], 1), 1),
        "max_abs_diff": difference,
        "max_abs_gradient_diff": gradient_difference,
        "seconds_forward": costs.forward,
        "seconds_step": costs.step,
    }
    print(json.dumps(result | vars(args)))


if __name__ == "__main__":
    main()
