"""Writes a BERT with given weights as an ONNX network, as fastembed reads it.

Usage: python benchmarks/bert_onnx.py SOURCE TARGET

SOURCE is a folder with `config.json`, `model.safetensors` and the tokenizer's files, as
sentence-transformers saves a BERT; TARGET is a folder for `EMBEDDING_MODEL`. Networks of other
architectures are refused. Tests write small random ones with it.
"""

import json
import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
SHARED = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


class Graph:
    """Nodes and weights, each under a name of its own."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self._weights = weights

    def weight(self, name: str, *, transposed: bool = False) -> str:
        value = np.asarray(self._weights[name], np.float32)
        self.constants[name] = np.ascontiguousarray(value.T) if transposed else value
        return name

    def constant(self, value: Any, kind: type = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value, kind)
        return name

    def add(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, x: str, name: str, *, output: str = "") -> str:
        product = self.add("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        return self.add("Add", product, self.weight(f"{name}.bias"), output=output)

    def normed(self, x: str, name: str, epsilon: float, *, output: str = "") -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add(
            "LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon, output=output
        )

    def gelu(self, x: str) -> str:
        bent = self.add("Erf", self.add("Div", x, self.constant(math.sqrt(2))))
        whole = self.add("Mul", x, self.add("Add", bent, self.constant(1.0)))
        return self.add("Mul", whole, self.constant(0.5))


def embeddings(graph: Graph, root: str, epsilon: float) -> str:
    words = graph.add("Gather", graph.weight(f"{root}word_embeddings.weight"), "input_ids")
    kinds = graph.add("Gather", graph.weight(f"{root}token_type_embeddings.weight"), "types")
    length = graph.add(
        "Gather", graph.add("Shape", "input_ids"), graph.constant(1, np.int64), axis=0
    )
    places = graph.add("Range", graph.constant(0, np.int64), length, graph.constant(1, np.int64))
    where = graph.add("Gather", graph.weight(f"{root}position_embeddings.weight"), places)
    summed = graph.add("Add", graph.add("Add", words, kinds), where)
    return graph.normed(summed, f"{root}LayerNorm", epsilon)


def layer(graph: Graph, x: str, root: str, heads: int, width: int, epsilon: float) -> str:
    split = graph.constant([0, 0, heads, width // heads], np.int64)

    def part(name: str, order: list[int]) -> str:
        projected = graph.dense(x, f"{root}attention.self.{name}")
        return graph.add("Transpose", graph.add("Reshape", projected, split), perm=order)

    asked, offered = part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1])
    scale = graph.constant(1 / math.sqrt(width // heads))
    scores = graph.add("Add", graph.add("Mul", graph.add("MatMul", asked, offered), scale), "mask")
    shares = graph.add("Softmax", scores, axis=-1)
    mixed = graph.add("MatMul", shares, part("value", [0, 2, 1, 3]))
    together = graph.add(
        "Reshape",
        graph.add("Transpose", mixed, perm=[0, 2, 1, 3]),
        graph.constant([0, 0, width], np.int64),
    )
    out = graph.dense(together, f"{root}attention.output.dense")
    x = graph.normed(graph.add("Add", out, x), f"{root}attention.output.LayerNorm", epsilon)
    inner = graph.gelu(graph.dense(x, f"{root}intermediate.dense"))
    out = graph.dense(inner, f"{root}output.dense")
    return graph.normed(graph.add("Add", out, x), f"{root}output.LayerNorm", epsilon)


def network(config: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """The network: hidden states, or logits where the weights have a `classifier`."""
    graph = Graph(weights)
    root = "bert." if any(name.startswith("bert.") for name in weights) else ""
    epsilon, width = config["layer_norm_eps"], config["hidden_size"]
    graph.add("Identity", "token_type_ids", output="types")
    seen = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    hidden = graph.add("Mul", graph.add("Sub", graph.constant(1.0), seen), graph.constant(-1e4))
    graph.add("Unsqueeze", hidden, graph.constant([1, 2], np.int64), output="mask")
    x = embeddings(graph, f"{root}embeddings.", epsilon)
    for number in range(config["num_hidden_layers"]):
        own = f"{root}encoder.layer.{number}."
        x = layer(graph, x, own, config["num_attention_heads"], width, epsilon)
    shape: list[Any] = ["batch", "tokens", width]
    name = "last_hidden_state"
    if "classifier.weight" in weights:
        first = graph.add("Gather", x, graph.constant(0, np.int64), axis=1)
        pooled = graph.add("Tanh", graph.dense(first, f"{root}pooler.dense"))
        name, shape = "logits", ["batch", len(weights["classifier.bias"])]
        graph.dense(pooled, "classifier", output=name)
    else:
        graph.add("Identity", x, output=name)
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    made = helper.make_graph(
        graph.nodes,
        "bert",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "tokens"]) for n in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, key) for key, value in graph.constants.items()],
    )
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(made, opset_imports=opset, ir_version=9)


def write_folder(source: Path, target: Path) -> None:
    from safetensors.numpy import load_file

    config = json.loads((source / "config.json").read_text("utf-8"))
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise SystemExit(f"{source} holds no BERT, but {config.get('model_type')!r}.")
    target.mkdir(parents=True, exist_ok=True)
    made = network(config, load_file(source / "model.safetensors"))
    onnx.save(made, str(target / "model.onnx"))
    for name in SHARED:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    pooling = source / "1_Pooling" / "config.json"
    if pooling.is_file():
        (target / "1_Pooling").mkdir(exist_ok=True)
        shutil.copyfile(pooling, target / "1_Pooling" / "config.json")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write_folder(Path(sys.argv[1]), Path(sys.argv[2]))
