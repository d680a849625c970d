"""A task in the form of GLUE's SST-2, and a model to fine-tune for it, made up here, so that nothing has to be fetched:
FOLDER/train.csv and FOLDER/dev.csv of sentences with a label, FOLDER/model with a tiny BERT and its tokenizer."""
import csv
import os
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, set_seed

WORDS = {0: ["dull", "slow", "weak", "flat"], 1: ["bright", "quick", "strong", "vivid"]}
FILLING = ["the", "film", "was", "a", "story", "and", "plot"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + FILLING + WORDS[0] + WORDS[1]


def write_sentences(path, count, seed):
    """Each has one word that gives its label away."""
    chance = random.Random(seed)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence", "label"])
        for _ in range(count):
            label = chance.randrange(2)
            words = chance.choices(FILLING, k=chance.randint(3, 8)) + [chance.choice(WORDS[label])]
            chance.shuffle(words)
            rows.writerow([" ".join(words), label])


def tokenizer():
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                   sep_token="[SEP]")


def main(folder):
    os.makedirs(folder, exist_ok=True)
    write_sentences(os.path.join(folder, "train.csv"), 512, seed=1)
    write_sentences(os.path.join(folder, "dev.csv"), 128, seed=2)
    set_seed(1)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=16, num_labels=2))
    for part in (model, tokenizer()):
        part.save_pretrained(os.path.join(folder, "model"))


if __name__ == "__main__":
    main(sys.argv[1])
