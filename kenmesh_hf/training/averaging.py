"""Adam with a running mean of the weights, which is evaluated and saved in their place."""

from collections.abc import Iterable
from typing import Any

import torch

# In the first steps the mean forgets faster, or the start would stay in it for a whole epoch.
_WARM_UP = 10


class AveragedAdam(torch.optim.Adam):
    """Adam that also keeps a running mean of every weight.

    The mean is nearer to the middle of where the steps wander, and scores better there. `eval` puts it in the
    place of the weights and `train` puts them back; `Trainer` calls both where they belong. Whichever of the
    two is not in its place is part of the state, so a training goes on from a checkpoint as if never stopped.

    Args:
        params: Parameters, or groups of them.
        average: Share of the mean that each step leaves; the weights are the rest.
        **settings: Those of `Adam`.
    """

    def __init__(self, params: Iterable[Any], average: float, **settings: Any):
        super().__init__(params, **settings)
        for group in self.param_groups:
            group.update(average=average, taken=0, mean_in_place=False)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        self.train()
        loss = super().step(closure)
        for group in self.param_groups:
            group["taken"] += 1
            kept = min(group["average"], group["taken"] / (_WARM_UP + group["taken"]))
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "mean" not in state:
                    state["mean"] = weight.clone()
                else:
                    state["mean"].lerp_(weight, 1 - kept)
        return loss

    def train(self) -> None:
        """Puts the weights in their place."""
        self._exchange(False)

    def eval(self) -> None:
        """Puts the mean in the place of the weights."""
        self._exchange(True)

    @torch.no_grad()
    def _exchange(self, mean_in_place: bool) -> None:
        for group in self.param_groups:
            if group["mean_in_place"] == mean_in_place:
                continue
            group["mean_in_place"] = mean_in_place
            for weight in group["params"]:
                if "mean" in self.state[weight]:
                    mean = self.state[weight]["mean"]
                    other = weight.clone()
                    weight.copy_(mean)
                    mean.copy_(other)
