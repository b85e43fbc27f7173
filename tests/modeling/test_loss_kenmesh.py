"""Which labels each loss counts."""

import torch
import torch.nn.functional as F
from kenmesh_networks import build_batch, build_network, score

from kenmesh_hf.modeling.modeling_kenmesh import UNSCORED


def test_losses_count_the_labels_they_name():
    model = build_network()
    inputs = build_batch(model)
    logits = score(model, inputs)
    gold = torch.zeros_like(logits, dtype=torch.bool)
    proposed = torch.zeros_like(gold)
    for row in range(4):
        gold[row, inputs["labels"][row][inputs["labels"][row] >= 0]] = True
        proposed[row, inputs["candidate_ids"][row][inputs["candidate_mask"][row]]] = True
    each = F.binary_cross_entropy_with_logits(logits, gold.double(), reduction="none")
    model.config.loss_labels = "candidates"
    output = model(**inputs)
    torch.testing.assert_close(output.loss.double(), each[proposed].mean(), rtol=1e-5, atol=1e-6)
    assert (output.logits[~proposed] == UNSCORED).all()
    model.config.loss_labels, model.config.num_sampled_negatives = "sampled", 0
    expected = each[proposed | gold].mean()
    torch.testing.assert_close(model(**inputs).loss.double(), expected, rtol=1e-5, atol=1e-6)
    model.config.num_sampled_negatives = 5000
    torch.testing.assert_close(model(**inputs).loss.double(), each.mean(), rtol=1e-5, atol=1e-6)
