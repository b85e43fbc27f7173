"""What the stock `Trainer` needs from us to train KenMeSH, and no more."""

import json
import math
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch
from datasets import Dataset
from transformers import (
    EarlyStoppingCallback,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.integrations import TensorBoardCallback, is_tensorboard_available

from ..errors import InputError, MismatchError
from ..evaluating import LabelSets, ScoredLabels, trainer_metrics, tune_thresholds
from ..files import write_json
from ..modeling.modeling_kenmesh import KenMeSHForMeSHIndexing
from ..modeling.processing_kenmesh import KenMeSHProcessor
from ..modeling.thresholds_kenmesh import Thresholds
from ..options import TrainingOptions
from ..preparing import PreparedDataset, RowStream, load_prepared
from ..showing import check_plots, plot_training
from .averaging import AveragedAdam
from .collator import KenMeSHCollator
from .encoder import parameter_groups, short_name, tokens_for
from .headings import learn_headings
from .network import START_ARTICLES, build_network, continue_network, start_evidence

CHECKPOINTS = "checkpoints"
LOGS = "runs"
SUMMARY_FILE = "training.json"
CURVES_FILE = "training.png"
TRAINER_STATE = "trainer_state.json"
# Labels of each article that validation looks at; an article has about twelve descriptors.
TOP_LABELS = 100
# Steps within an epoch after which a checkpoint is saved: half an hour at a step a second.
SAVE_STEPS = 2000
# Options that change nothing but the speed, and may be others when a training goes on.
FREE_OPTIONS = ("num_workers", "gradient_checkpointing")
# Share of the first epoch in which the learning rates of an encoder rise from zero: the parts around it are
# new at first, and what they ask of it is noise.
WARM_UP = 0.1


def keep_best_labels(logits: torch.Tensor, labels: torch.Tensor) -> Any:
    """`preprocess_logits_for_metrics`: ids and probabilities of the best labels instead of all logits."""
    scores, ids = logits.float().topk(min(TOP_LABELS, logits.shape[1]), dim=1)
    return ids, scores.sigmoid()


def build_optimizer(
    model: torch.nn.Module, options: TrainingOptions, steps_per_epoch: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    """Adam, with learning rates that fall by the same factor after every epoch; an encoder's rise before."""

    def fall(step: int) -> float:
        return options.decay ** (step // steps_per_epoch)

    def rise_and_fall(step: int) -> float:
        return min(1.0, (step + 1) / max(1.0, WARM_UP * steps_per_epoch)) * fall(step)

    ours, *encoders = parameter_groups(model, options)
    groups = [ours, *encoders]
    optimizer = AveragedAdam(groups, options.average) if options.average else torch.optim.Adam(groups)
    factors: Any = [fall] + [rise_and_fall] * len(encoders)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factors)


def training_arguments(out: Path, options: TrainingOptions, **overrides: Any) -> TrainingArguments:
    """The options in the words of `Trainer`."""
    settings: dict[str, Any] = {
        "output_dir": str(out),
        "num_train_epochs": options.epochs,
        "max_steps": options.max_steps or -1,
        "per_device_train_batch_size": options.batch_size,
        "per_device_eval_batch_size": 2 * options.batch_size,
        "max_grad_norm": options.clip_norm,
        "dataloader_num_workers": options.num_workers,
        # Each process reads its own part of a stream. One that read for all would send batches around that
        # are padded to different lengths, which accelerate cannot join.
        "accelerator_config": {"dispatch_batches": False},
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "save_total_limit": 2,
        "load_best_model_at_end": True,
        "metric_for_best_model": "MiF",
        "greater_is_better": True,
        "logging_steps": 50,
        "label_names": ["labels"],
        "remove_unused_columns": False,
        "report_to": [],
        # Several processes on a machine without GPU find each other only if told that there is none.
        "use_cpu": not torch.accelerator.is_available(),
        "dataloader_pin_memory": torch.cuda.is_available(),
        "bf16": options.bf16 or (torch.cuda.is_available() and torch.cuda.is_bf16_supported()),
        "fp16": not options.bf16 and torch.cuda.is_available() and not torch.cuda.is_bf16_supported(),
        "seed": options.seed,
    }
    if options.gradient_checkpointing:
        settings["gradient_checkpointing"] = True
    return TrainingArguments(**(settings | overrides))


class SaveWithinEpochs(TrainerCallback):
    """Saves checkpoints within a long epoch, too.

    Not after its last step: the checkpoint there comes after the evaluation, and who goes on from it does not
    evaluate again.

    Args:
        steps_per_epoch: Steps of an epoch.
        every: Steps between two checkpoints.
    """

    def __init__(self, steps_per_epoch: int, every: int):
        self.steps_per_epoch = steps_per_epoch
        self.every = every

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        done = state.global_step % self.steps_per_epoch
        if done and done % self.every == 0 and state.global_step < state.max_steps:
            control.should_save = True


def build_trainer(
    model: PreTrainedModel,
    processor: KenMeSHProcessor,
    train: RowStream,
    validation: Dataset,
    arguments: TrainingArguments,
    options: TrainingOptions,
) -> Trainer:
    """A stock `Trainer` for rows of a prepared dataset.

    Args:
        model: Network to train.
        processor: Whose tokenizer goes into each checkpoint; its index does not.
        train: Training rows; their batches become those of all processes together.
        validation: Rows that decide when to stop and which weights are best.
        arguments: Those of `Trainer`; logs for TensorBoard go beside its folder of checkpoints.
        options: How to train.
    """
    train.batch_size = arguments.train_batch_size * arguments.world_size
    steps = math.ceil(len(train) / (train.batch_size * arguments.gradient_accumulation_steps))
    callbacks: list[TrainerCallback] = [
        EarlyStoppingCallback(options.patience),
        SaveWithinEpochs(steps, SAVE_STEPS),
    ]
    if is_tensorboard_available():
        tensorboard = TensorBoardCallback()
        tensorboard.logging_dir = str(Path(str(arguments.output_dir)).parent / LOGS)
        callbacks.append(tensorboard)
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=validation,
        data_collator=KenMeSHCollator(len(processor.candidates.FEATURES)),
        processing_class=processor.tokenizer,
        compute_metrics=trainer_metrics(np.asarray(validation["unknown_labels"])),
        preprocess_logits_for_metrics=keep_best_labels,
        optimizers=build_optimizer(model, options, steps),
        callbacks=callbacks,
    )


def start_network(
    prepared: PreparedDataset, train: RowStream, options: TrainingOptions
) -> KenMeSHForMeSHIndexing:
    """A fresh network with the dataset's word vectors, or with an encoder whose tokens the dataset has.

    Evidence weights are trained before it.
    """
    torch.manual_seed(options.seed)
    settings = options.network_settings() | {"text_encoder": options.encoder}
    vectors = None if options.encoder else prepared.word_vectors
    model = build_network(prepared.processor, vectors, options.evidence, **settings)
    if options.evidence:
        start_evidence(model, train.sample(START_ARTICLES, options.seed))
    return model


def train(
    options: TrainingOptions,
    data: str | Path,
    out: str | Path,
    resume: bool = False,
    start_from: str | Path | None = None,
    **overrides: Any,
) -> dict[str, Any]:
    """Trains on a prepared dataset; `out` becomes a complete model that the pipeline loads.

    Args:
        options: How to train.
        data: Folder of `kenmesh prepare`.
        out: Folder of the model. Until training is finished it holds the best checkpoint and the last one.
        resume: Go on from the last checkpoint in `out`, if there is one; the result is that of a training
            that was not interrupted.
        start_from: A model to train further instead of a fresh one.
        **overrides: Further `TrainingArguments`.

    Returns:
        What `training.json` says.
    """
    options.check()
    check_plots()
    prepared, out = load_prepared(data), Path(out)
    model: KenMeSHForMeSHIndexing
    checkpoints = out / CHECKPOINTS
    settings = asdict(options) | {"data": Path(data).name, "start_from": start_from and Path(start_from).name}
    settings["encoder"] = options.encoder and short_name(options.encoder)
    arguments = training_arguments(checkpoints, options, **overrides)
    with arguments.main_process_first(local=False):
        # The other processes go on with what the first has begun.
        prepared = tokens_for(prepared, options, start_from, not arguments.disable_tqdm)
        resumed_from = _begin(checkpoints, settings, resume or arguments.process_index > 0)
    rows, validation = training_rows(prepared, options), validation_rows(prepared, options)
    if resumed_from:
        model = KenMeSHForMeSHIndexing.from_pretrained(resumed_from)
    elif start_from:
        changes = {"embedding_dropout": options.dropout, "loss_labels": options.loss_labels}
        model = continue_network(start_from, prepared.processor, prepared.word_vectors, **changes)
    else:
        model = start_network(prepared, rows, options)
    if options.gradient_checkpointing and model.config.text_encoder is None:
        raise InputError(
            "Only layers of an encoder can be computed twice; leave --gradient-checkpointing out."
        )
    trainer = build_trainer(model, prepared.processor, rows, validation, arguments, options)
    start = time.perf_counter()
    if resumed_from and _is_last(resumed_from):
        trainer.state = _take_best(model, resumed_from)
    else:
        with _plain_errors():
            trainer.train(resume_from_checkpoint=resumed_from)
    thresholds = find_thresholds(trainer, validation, len(prepared.processor.vocabulary))
    summary = _summary(trainer.state.log_history, settings, thresholds)
    summary |= {"parameters": model.num_parameters(), "seconds": round(time.perf_counter() - start, 1)}
    if trainer.is_world_process_zero():
        processor = prepared.processor.with_parts(thresholds=thresholds)
        _save(model, learn_headings(model, processor, prepared, options.seed), summary, out)
    # Nobody leaves before the model is whole, nor before the threads that gathered scores have come to rest.
    trainer.accelerator.wait_for_everyone()
    return summary


@contextmanager
def _plain_errors() -> Iterator[None]:
    """A loader's worker tells an error with its traceback; the last line of that is for people."""
    try:
        yield
    except InputError as error:
        if not str(error).startswith("Caught "):
            raise
        last = str(error).strip().rpartition("\n")[2]
        raise InputError(last.partition(": ")[2]) from error


def training_rows(prepared: PreparedDataset, options: TrainingOptions) -> RowStream:
    """The rows to train on: those with an abstract, unless the others are wanted too, and not too old."""
    rows = prepared.stream("train", options.batch_size, options.seed)
    if not options.title_only:
        rows = rows.where(["input_ids"], lambda t: pc.list_value_length(t["input_ids"]).to_numpy() > 0)
        if not len(rows):
            raise InputError("No training article has an abstract; train with title_only.")
    if options.since:
        since = options.since
        rows = rows.where(["year"], lambda t: pc.fill_null(t["year"], since).to_numpy() >= since)
        if not len(rows):
            raise InputError(f"No training article is of {since} or later; train with other years.")
    return rows


def validation_rows(prepared: PreparedDataset, options: TrainingOptions) -> Dataset:
    """The rows to validate on, the longest first so that little is padded.

    Of many it is a sample, the same for every training on the dataset, so that they can be compared.
    """
    rows = prepared.validation
    chosen = np.random.default_rng(0).permutation(len(rows))[: options.validation_articles]
    longest_first = np.argsort(-np.asarray(rows["length"][:])[chosen], kind="stable")
    return rows.select(chosen[longest_first], keep_in_memory=True)


def _begin(folder: Path, settings: dict[str, Any], resume: bool) -> str | None:
    """Makes sure that a training goes on as it began; gives the checkpoint to go on from."""
    begun = folder / SUMMARY_FILE
    if begun.exists():
        if not resume:
            raise InputError(
                f"{folder.parent} holds a training that was not finished; resume it or choose another folder."
            )
        # What an earlier version had no option for was as it is by default.
        before = asdict(TrainingOptions()) | json.loads(begun.read_text(encoding="utf-8"))
        bound = [name for name in settings if name not in FREE_OPTIONS]
        if changed := [name for name in bound if settings[name] != before.get(name)]:
            raise MismatchError(
                f"The training in {folder.parent} was begun with another {changed[0]}: "
                f"{before.get(changed[0])!r}, now {settings[changed[0]]!r}. Resume it with the same options."
            )
    write_json(begun, settings)
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    return next((str(path) for path in reversed(found) if _is_whole(path)), None)


def _is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint was written to its end before a kill."""
    try:
        json.loads((checkpoint / TRAINER_STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _is_last(checkpoint: str) -> bool:
    """Whether a training was over when it saved this checkpoint: `Trainer` would go on a step too far."""
    state = TrainerState.load_from_json(f"{checkpoint}/{TRAINER_STATE}")
    return state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]


def _take_best(model: KenMeSHForMeSHIndexing, last: str) -> TrainerState:
    """What `Trainer` does at the end of a training, for one that was killed after its last checkpoint."""
    state = TrainerState.load_from_json(f"{last}/{TRAINER_STATE}")
    best = Path(last).parent / f"checkpoint-{state.best_global_step}"
    model.load_state_dict(KenMeSHForMeSHIndexing.from_pretrained(best).state_dict())
    return state


def find_thresholds(trainer: Trainer, validation: Dataset, num_labels: int) -> Thresholds:
    """Thresholds tuned on validation articles."""
    prediction = trainer.predict(validation)
    scored = ScoredLabels.from_padded(*prediction.predictions)
    gold = LabelSets.from_padded(np.asarray(prediction.label_ids), np.asarray(validation["unknown_labels"]))
    return tune_thresholds(scored, gold, num_labels)


def _summary(
    history: list[dict[str, float]], settings: dict[str, Any], thresholds: Thresholds
) -> dict[str, Any]:
    evaluated = [entry for entry in history if "eval_MiF" in entry]
    best = max(evaluated, key=lambda entry: entry["eval_MiF"])
    return {
        "options": settings,
        "epochs": len(evaluated),
        "best": {name.removeprefix("eval_"): value for name, value in best.items()},
        "threshold": thresholds.global_threshold,
        "held_out": thresholds.held_out,
        "history": history,
    }


def _save(
    model: KenMeSHForMeSHIndexing, processor: KenMeSHProcessor, summary: dict[str, Any], out: Path
) -> None:
    """Writes the complete model; the checkpoints are then no longer needed."""
    model.save_pretrained(out)
    processor.save_pretrained(out)
    plot_training(out / CURVES_FILE, summary["history"])
    write_json(out / SUMMARY_FILE, summary)
    shutil.rmtree(out / CHECKPOINTS)
