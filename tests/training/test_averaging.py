"""The running mean of the weights: what it is, when it is in their place, and that a kill loses nothing."""

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import EarlyStoppingCallback

from kenmesh_hf.errors import InputError
from kenmesh_hf.training import options_for, train
from kenmesh_hf.training.averaging import AveragedAdam

OPTIONS = {"epochs": 3, "learning_rate": 0.02, "batch_size": 8, "residual": True, "average": 0.9}


def optimizer_of(weight: torch.nn.Parameter, average: float = 0.5) -> AveragedAdam:
    return AveragedAdam([weight], average, lr=0.1)


def take_step(weight: torch.nn.Parameter, optimizer: AveragedAdam) -> torch.Tensor:
    optimizer.train()
    optimizer.zero_grad()
    (weight**2).sum().backward()
    optimizer.step()
    return weight.detach().clone()


def test_mean_is_that_of_the_steps() -> None:
    weight = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = optimizer_of(weight)
    steps = [take_step(weight, optimizer) for _ in range(40)]
    mean = steps[0]
    for number, step in enumerate(steps[1:], start=2):
        kept = min(0.5, number / (10 + number))
        mean = kept * mean + (1 - kept) * step
    optimizer.eval()
    torch.testing.assert_close(weight.detach(), mean)
    optimizer.eval()
    torch.testing.assert_close(weight.detach(), mean)
    optimizer.train()
    assert torch.equal(weight, steps[-1])


def test_steps_are_those_of_adam() -> None:
    ours, theirs = (torch.nn.Parameter(torch.tensor([3.0, -2.0])) for _ in range(2))
    averaged, plain = optimizer_of(ours), torch.optim.Adam([theirs], lr=0.1)
    for _ in range(5):
        averaged.eval()
        take_step(ours, averaged)
        plain.zero_grad()
        (theirs**2).sum().backward()
        plain.step()
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("in_place", [False, True])
def test_state_goes_on_from_either_side(in_place: bool) -> None:
    weight = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = optimizer_of(weight)
    for _ in range(3):
        take_step(weight, optimizer)
    if in_place:
        optimizer.eval()
    other = torch.nn.Parameter(weight.detach().clone())
    resumed = optimizer_of(other)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert torch.equal(take_step(weight, optimizer), take_step(other, resumed))
    optimizer.eval()
    resumed.eval()
    assert torch.equal(weight, other)


def test_killed_training_ends_with_the_same_mean(
    tiny_prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(self, args, state, control, **kwargs):
        if state.epoch > 1.4:
            raise KeyboardInterrupt

    options, quiet = options_for(**OPTIONS), {"disable_tqdm": True}
    train(options, tiny_prepared, tmp_path / "whole", **quiet)
    with monkeypatch.context() as patch:
        patch.setattr(EarlyStoppingCallback, "on_step_end", kill)
        with pytest.raises(KeyboardInterrupt):
            train(options, tiny_prepared, tmp_path / "killed", **quiet)
    train(options, tiny_prepared, tmp_path / "killed", resume=True, **quiet)
    train(options_for(**(OPTIONS | {"average": 0.0})), tiny_prepared, tmp_path / "plain", **quiet)
    whole, killed, plain = (
        load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed", "plain")
    )
    assert all(torch.equal(weight, killed[name]) for name, weight in whole.items())
    assert any(not torch.equal(weight, plain[name]) for name, weight in whole.items())


def test_share_outside_its_bounds_is_refused(tiny_prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--average is 1.0"):
        train(options_for(average=1.0), tiny_prepared, tmp_path)
