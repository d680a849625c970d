"""In the manner of Hugging Face's run_glue: the Trainer fine-tunes a BERT to tell sentences of two kinds apart. The model
is a tiny one from a configuration and the sentences are made up here, so that nothing has to be fetched."""
import argparse
import json
import os
import random
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

WORDS = {0: ["dull", "slow", "weak", "flat"], 1: ["bright", "quick", "strong", "vivid"]}
FILLING = ["the", "film", "was", "a", "story", "and", "plot"]
VOCABULARY = ["[PAD]", "[CLS]"] + FILLING + WORDS[0] + WORDS[1]


class Sentences(torch.utils.data.Dataset):
    """`count` sentences of eight tokens, each with one word that gives its label away."""

    def __init__(self, count, seed):
        chance = random.Random(seed)
        self.items = []
        for _ in range(count):
            label = chance.randrange(2)
            words = [chance.choice(FILLING) for _ in range(6)] + [chance.choice(WORDS[label])]
            chance.shuffle(words)
            tokens = [VOCABULARY.index(word) for word in ["[CLS]", *words]]
            self.items.append({"input_ids": torch.tensor(tokens), "attention_mask": torch.ones(8, dtype=torch.long),
                               "labels": torch.tensor(label)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=float, default=3)
    parser.add_argument("--output_dir", default="outputs")
    options = parser.parse_args()
    set_seed(1)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=16, num_labels=2))
    trainer = Trainer(
        model=model, compute_metrics=accuracy, train_dataset=Sentences(512, 1), eval_dataset=Sentences(128, 2),
        args=TrainingArguments(options.output_dir, num_train_epochs=options.num_train_epochs, learning_rate=5e-3,
                               per_device_train_batch_size=16, per_device_eval_batch_size=32, report_to=[],
                               save_strategy="no", disable_tqdm=True, use_cpu=True, ddp_backend="gloo"))
    trainer.train()
    result = trainer.evaluate()
    rank, world_size = trainer.args.process_index, trainer.args.world_size
    line = f"rank {rank} of {world_size}: accuracy {result['eval_accuracy']:.3f}\n"
    print(line, end="", flush=True)  # one write: the processes of a node share their output
    if rank == 0:
        trainer.save_model()
        with open(os.path.join(options.output_dir, "eval_results.json"), "w") as file:
            json.dump(result, file)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 0 if result["eval_accuracy"] > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
