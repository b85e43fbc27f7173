"""A whole training step and a prediction at the size of the real MeSH: ours, dense label part, encoder alone.

The dense label part of 32 articles would need some 15 GB at once. It runs on a few articles at a time and
sums their gradients, which costs it no extra work and makes `peak_memory_ratio` a lower bound.
"""

import json

import torch
import torch.nn.functional as F
from _measure import measure_costs, parse_arguments
from label_attention import dense
from torch import Tensor

from kenmesh_hf.modeling.configuration_kenmesh import KenMeSHConfig
from kenmesh_hf.modeling.modeling_kenmesh import KenMeSHForMeSHIndexing


def build_model(args) -> KenMeSHForMeSHIndexing:
    """The paper's network with an invented hierarchy: three words a name, 1.4 parents a label."""
    tokens, edges = 3 * args.labels, int(1.4 * args.labels)
    config = KenMeSHConfig(
        vocab_size=args.words,
        embedding_size=args.embedding,
        num_labels=args.labels,
        num_label_tokens=tokens,
        num_edges=edges,
    )
    model = KenMeSHForMeSHIndexing(config)
    child = torch.randint(1, args.labels, (edges,))
    parent = (child * torch.rand(edges)).long()
    names = torch.randint(2, args.words, (tokens,))
    model.kenmesh.set_labels(names, torch.arange(0, tokens, 3), torch.stack([parent, child]))
    return model


def build_batch(args) -> dict[str, Tensor]:
    """Articles of random words; abstracts from half of the length to all of it."""
    lengths = torch.randint(args.text // 2, args.text + 1, (args.batch, 1))
    return {
        "input_ids": torch.randint(2, args.words, (args.batch, args.text)),
        "attention_mask": torch.arange(args.text) < lengths,
        "title_input_ids": torch.randint(2, args.words, (args.batch, args.title)),
        "title_attention_mask": torch.ones(args.batch, args.title, dtype=torch.bool),
        "candidate_ids": torch.stack(
            [torch.randperm(args.labels)[: args.candidates] for _ in range(args.batch)]
        ),
        "labels": torch.randint(0, args.labels, (args.batch, 13)),
    }


def encode(model: KenMeSHForMeSHIndexing, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Title and abstract features, which every version computes alike."""
    base = model.kenmesh
    title = base.encode_text(batch["title_input_ids"], batch["title_attention_mask"], is_title=True)
    text = base.encode_text(batch["input_ids"], batch["attention_mask"])
    return title[-1], text[-1]


def dense_parts(model: KenMeSHForMeSHIndexing, batch: dict[str, Tensor], features, rows: int):
    """Logits by the dense formula, a few articles at a time, with the gold labels of those articles."""
    title, text, keys = features
    for start in range(0, len(title), rows):
        part = slice(start, start + rows)
        candidates = batch["candidate_ids"][part]
        logits = dense(title[part], batch["title_attention_mask"][part], keys, candidates)
        logits = logits + dense(text[part], batch["attention_mask"][part], keys, candidates)
        yield logits, torch.zeros_like(logits).scatter(1, batch["labels"][part], 1.0)


def dense_step(model: KenMeSHForMeSHIndexing, batch: dict[str, Tensor], rows: int):
    """Forward and backward through labels in parts, then once through the encoders."""
    features = (*encode(model, batch), model.kenmesh.label_features())
    leaves = [feature.detach().requires_grad_() for feature in features]
    for logits, gold in dense_parts(model, batch, leaves, rows):
        loss = F.binary_cross_entropy_with_logits(logits, gold) * len(gold) / len(batch["labels"])
        loss.backward()
    torch.autograd.backward(features, [leaf.grad for leaf in leaves])


def main():
    sizes = {"batch": 32, "text": 200, "title": 20, "labels": 28_415, "candidates": 500}
    args = parse_arguments(__doc__, **sizes, embedding=200, words=50_000, dense_rows=8)
    model, batch = build_model(args).train(), build_batch(args)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)

    def step(backward):
        optimizer.zero_grad()
        backward()
        optimizer.step()

    steps = {
        "ours": lambda: step(lambda: model(**batch).loss.backward()),
        "dense": lambda: step(lambda: dense_step(model, batch, args.dense_rows)),
        "encoder": lambda: step(lambda: sum(states.sum() for states in encode(model, batch)).backward()),
    }
    inputs = {name: value for name, value in batch.items() if name != "labels"}

    def dense_forward():
        features = (*encode(model, batch), model.kenmesh.label_features())
        return torch.cat([logits for logits, _ in dense_parts(model, batch, features, args.dense_rows)])

    forwards = {
        "ours": lambda: model(**inputs).logits,
        "dense": dense_forward,
        "encoder": lambda: encode(model, batch),
    }

    def finish_training():
        optimizer.zero_grad()
        model.eval()

    costs = measure_costs("prediction", forwards, steps, args.repeats, finish_training)
    with torch.no_grad():
        difference = (model(**inputs).logits - dense_forward()).abs().max().item()
    result = {
        "benchmark": "training_step",
        "ratio_step": round(costs.step["dense"] / costs.step["ours"], 1),
        "ratio_forward": round(costs.forward["dense"] / costs.forward["ours"], 1),
        "step_over_encoder": round(costs.step["ours"] / costs.step["encoder"], 2),
        "inference_over_encoder": round(costs.forward["ours"] / costs.forward["encoder"], 2),
        "peak_memory_ratio": round(costs.memory["dense"] / max(costs.memory["ours"], 1), 1),
        "max_abs_diff": difference,
        "seconds_step": costs.step,
        "seconds_forward": costs.forward,
    }
    print(json.dumps(result | vars(args)))


if __name__ == "__main__":
    main()
