"""Hand-written gradients, and the tensors that must never be made."""

import pytest
import torch
from kenmesh_networks import LABELS, WORDS, build_batch, build_network, every_switch
from torch.utils._python_dispatch import TorchDispatchMode

from kenmesh_hf.modeling.functional_kenmesh import AttendedScore, ScoreAndGatherLabels, SpreadOverGraph


def test_hand_written_gradients():
    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert torch.autograd.gradcheck(AttendedScore.apply, (draw(2, 3, 4), mask, draw(2, 5, 4)))
    assert torch.autograd.gradcheck(AttendedScore.apply, (draw(2, 3, 4), mask, draw(5, 4)))
    ids = torch.tensor([[0, 2], [2, 2]])
    assert torch.autograd.gradcheck(ScoreAndGatherLabels.apply, (draw(4, 3), draw(2, 3), ids))
    columns, starts = torch.tensor([0, 1, 0, 1, 2]), torch.tensor([0, 2, 4])
    entries = torch.tensor([1.0, 0.5, 0.5, 2.0, 3.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(SpreadOverGraph.apply, (draw(3, 2), columns, starts, entries))


class ShapeRecorder(TorchDispatchMode):
    """Notes the shape of every tensor that any operation returns."""

    def __init__(self):
        super().__init__()
        self.shapes: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.shapes.add(tuple(tensor.shape))
        return result


@pytest.mark.parametrize("candidates", [True, False])
@every_switch
def test_no_tensor_of_all_labels_by_words_or_features(changes, candidates):
    model = build_network(attention_chunk_elements=60, **changes)
    inputs = build_batch(model, batch=4, text=9, title=5)
    if not candidates:
        inputs = {name: value for name, value in inputs.items() if not name.startswith("candidate_")}
    with ShapeRecorder() as recorder:
        model(**inputs).loss.backward()
    big = {4 * size * LABELS for size in (9, 5, 14, model.config.hidden_size)}
    assert (4, 9, 12) in recorder.shapes or (4, 14, 12) in recorder.shapes
    assert (WORDS, 6) in recorder.shapes, "the backward pass went unseen"
    assert not [shape for shape in recorder.shapes if torch.Size(shape).numel() in big and LABELS in shape]
    assert not [shape for shape in recorder.shapes if len(shape) == 3 and LABELS in shape]


def test_blocks_of_labels_equal_one_block():
    whole = build_network()
    inputs = {"input_ids": build_batch(whole)["input_ids"], "labels": build_batch(whole)["labels"]}
    expected = whole(**inputs)
    expected.loss.backward()
    for bound in (1, 36, 100, 611):
        blocks = build_network(attention_chunk_elements=bound)
        output = blocks(**inputs)
        output.loss.backward()
        torch.testing.assert_close(output.logits, expected.logits)
        for one, other in zip(whole.parameters(), blocks.parameters(), strict=True):
            if one.grad is not None:
                torch.testing.assert_close(one.grad, other.grad)
