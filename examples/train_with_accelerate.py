"""The training of `kenmesh train` as an explicit accelerate loop, to change as you like.

One process:   python examples/train_with_accelerate.py DATA OUT
Two processes: torchrun --nproc_per_node 2 examples/train_with_accelerate.py DATA OUT

DATA is what `kenmesh prepare` made. The batch size is that of all processes together, so that the number of
processes changes the speed and nothing else.
"""

import argparse
from collections.abc import Iterator
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader

from kenmesh_hf.evaluating import trainer_metrics
from kenmesh_hf.preparing import load_prepared
from kenmesh_hf.training import (
    KenMeSHCollator,
    build_optimizer,
    keep_best_labels,
    options_for,
    start_network,
    training_rows,
)


def train_epoch(accelerator, model, loader, optimizer, schedule, options) -> Iterator[float]:
    """One pass over the articles; gives the loss of each global batch."""
    model.train()
    for batch in loader:
        loss = model(**batch).loss
        # A loss over candidates is a mean over as many as the process happens to have: weigh it by them.
        over_candidates = options.loss_labels == "candidates"
        counted = batch["candidate_mask"].sum() if over_candidates else torch.tensor(len(batch["input_ids"]))
        counted = counted.to(accelerator.device, torch.float32)
        loss = loss * counted / accelerator.reduce(counted, "mean")
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), options.clip_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        yield accelerator.reduce(loss.detach(), "mean").item()


@torch.no_grad()
def evaluate(accelerator, model, loader, metrics) -> float:
    """Micro-F of the validation articles at the best threshold."""
    model.eval()
    ids, scores, labels = [], [], []
    for batch in loader:
        best, probabilities = keep_best_labels(model(**batch).logits, batch["labels"])
        gold = accelerator.pad_across_processes(batch["labels"], dim=1, pad_index=-100)
        best, probabilities, gold = accelerator.gather_for_metrics((best, probabilities, gold))
        ids += best.cpu()
        scores += probabilities.cpu()
        labels += gold.cpu()
    gold = torch.nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=-100).numpy()
    predictions = (torch.stack(ids).numpy(), torch.stack(scores).numpy())
    return metrics(SimpleNamespace(predictions=predictions, label_ids=gold))["MiF"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.2)
    chosen = parser.parse_args(arguments)
    options = options_for(chosen.preset, epochs=chosen.epochs, dropout=chosen.dropout)

    # Processes share each batch, and each reads its own part; the last of an epoch, which may not divide
    # equally, is left out. Without `cpu` several processes on a machine without GPU would each train alone.
    accelerator = Accelerator(
        cpu=not torch.accelerator.is_available(),
        dataloader_config=DataLoaderConfiguration(split_batches=True, dispatch_batches=False),
    )
    set_seed(options.seed)
    prepared = load_prepared(chosen.data)
    rows, validation = training_rows(prepared, options), prepared.validation
    model = start_network(prepared, rows, options)
    collate = KenMeSHCollator(len(prepared.processor.candidates.FEATURES))
    # The stream shuffles by itself, in another order each epoch, and puts rows of like length into a batch.
    loader = DataLoader(rows, options.batch_size, collate_fn=collate, drop_last=True)
    optimizer, schedule = build_optimizer(model, options, len(loader))
    held_out = DataLoader(validation, options.batch_size, collate_fn=collate)
    model, optimizer, loader, held_out = accelerator.prepare(model, optimizer, loader, held_out)

    metrics = trainer_metrics(validation["unknown_labels"])
    best, waited = -1.0, 0
    for epoch in range(options.epochs):
        for step, loss in enumerate(train_epoch(accelerator, model, loader, optimizer, schedule, options)):
            accelerator.print(f"epoch {epoch + 1} step {step + 1} loss {loss:.6f}")
        score = evaluate(accelerator, model, held_out, metrics)
        accelerator.print(f"epoch {epoch + 1} MiF {score:.4f}")
        if score > best:
            best, waited = score, 0
            if accelerator.is_main_process:
                accelerator.unwrap_model(model).save_pretrained(chosen.out)
                prepared.processor.save_pretrained(chosen.out)
        elif (waited := waited + 1) == options.patience:
            break
    # What shares gradients must go before the connection does: as the last to hold it, it might wait for ever
    # for a thread that waits for Python (pytorch/pytorch#56297).
    model, optimizer, loader, held_out = accelerator.free_memory(model, optimizer, loader, held_out)
    accelerator.end_training()


if __name__ == "__main__":
    main()
