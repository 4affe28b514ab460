"""A cross-encoder of a few kB with random weights, as a folder that fastembed loads."""

import json
import runpy
from pathlib import Path

import numpy as np
import onnx
from tokenizers import Tokenizer, models, pre_tokenizers, processors

NETWORK = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks/bert_onnx.py"))["network"]
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "storage", "snapshot", "replica", "volume", "primary")
PLACES, WIDTH, INNER = 64, 8, 16
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": WIDTH,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}


def write_cross_encoder(folder: Path, *, scores: int = 1) -> Path:
    """Write the folder; `scores` is how many numbers the network gives for a pair."""
    folder.mkdir(parents=True)
    onnx.save(NETWORK(CONFIG, weights(scores)), str(folder / "model.onnx"))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"model_max_length": PLACES, "pad_token": "[PAD]"})
    )
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    built = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    built.save(str(folder / "tokenizer.json"))
    return folder


def weights(scores: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    found: dict[str, np.ndarray] = {}

    def dense(name: str, rows: int, columns: int) -> None:
        found[f"{name}.weight"] = random.normal(size=(rows, columns))
        found[f"{name}.bias"] = random.normal(size=rows)

    def normed(name: str) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = np.ones(WIDTH), np.zeros(WIDTH)

    for name, rows in (("word", len(WORDS)), ("position", PLACES), ("token_type", 2)):
        found[f"bert.embeddings.{name}_embeddings.weight"] = random.normal(size=(rows, WIDTH))
    normed("bert.embeddings.LayerNorm")
    layer = "bert.encoder.layer.0"
    for part in ("query", "key", "value"):
        dense(f"{layer}.attention.self.{part}", WIDTH, WIDTH)
    dense(f"{layer}.attention.output.dense", WIDTH, WIDTH)
    normed(f"{layer}.attention.output.LayerNorm")
    dense(f"{layer}.intermediate.dense", INNER, WIDTH)
    dense(f"{layer}.output.dense", WIDTH, INNER)
    normed(f"{layer}.output.LayerNorm")
    dense("bert.pooler.dense", WIDTH, WIDTH)
    dense("classifier", scores, WIDTH)
    return found
