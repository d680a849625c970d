"""Fine-tunes a model for a task of GLUE with Hugging Face's Trainer. Takes the arguments that the run_glue of transformers
takes, as far as they are below: a model's folder or name, CSV files with a sentence and a label, TrainingArguments."""
import csv
import sys
from dataclasses import dataclass

import torch
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, HfArgumentParser,
                          Trainer, TrainingArguments, set_seed)


@dataclass
class GlueArguments:
    model_name_or_path: str
    train_file: str
    validation_file: str
    max_seq_length: int = 128


def read_sentences(path, tokenizer, max_length):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [{**tokenizer(row["sentence"], truncation=True, max_length=max_length), "labels": int(row["label"])}
            for row in rows]


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    options, training = HfArgumentParser((GlueArguments, TrainingArguments)).parse_args_into_dataclasses()
    set_seed(training.seed)
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path)
    trainer = Trainer(
        model=AutoModelForSequenceClassification.from_pretrained(options.model_name_or_path, num_labels=2), args=training,
        train_dataset=read_sentences(options.train_file, tokenizer, options.max_seq_length),
        eval_dataset=read_sentences(options.validation_file, tokenizer, options.max_seq_length),
        data_collator=DataCollatorWithPadding(tokenizer), compute_metrics=accuracy)
    if training.do_train:
        trainer.save_metrics("train", trainer.train().metrics)
        trainer.save_model()
    if training.do_eval:
        metrics = trainer.evaluate()
        trainer.save_metrics("eval", metrics)
        rank, world_size = training.process_index, training.world_size
        line = f"rank {rank} of {world_size}: accuracy {metrics['eval_accuracy']:.3f}\n"
        print(line, end="", flush=True)  # one write: the processes of a node share their output
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
