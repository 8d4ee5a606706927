#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_weights.py FILE [LAYERS]: make up the weights of a model, as a safetensors file. Its
metadata have the SHA-256 of each tensor, so that it can be checked wherever it is loaded."""
import hashlib
import json
import pathlib
import struct
import sys

import numpy

HIDDEN, VOCABULARY = 384, 4096
# NumPy has no bfloat16: the content of such a tensor does not matter here.
TYPES = {"F32": numpy.float32, "F16": numpy.float16, "BF16": numpy.uint16,
         "F8_E4M3": numpy.uint8, "I64": numpy.int64, "U8": numpy.uint8, "BOOL": numpy.bool_}


def shapes(layers):
    """Name, type and shape of each tensor."""
    yield "model.embed_tokens.weight", "BF16", (VOCABULARY, HIDDEN)
    for n in range(layers):
        layer = f"model.layers.{n}"
        for part in "qkvo":
            yield f"{layer}.self_attn.{part}_proj.weight", "F16", (HIDDEN, HIDDEN)
        yield f"{layer}.mlp.gate_proj.weight", "F8_E4M3", (3 * HIDDEN, HIDDEN)
        yield f"{layer}.input_layernorm.weight", "F32", (HIDDEN,)
    yield "mask", "BOOL", (7, 3)
    yield "step", "I64", ()
    yield "unused", "U8", (0, 5)


def main():
    random = numpy.random.default_rng(1)
    header, digests, data, at = {}, {}, [], 0
    for name, kind, shape in shapes(int(sys.argv[2]) if len(sys.argv) > 2 else 4):
        some = random.integers(0, 100, shape).astype(TYPES[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(some)]}
        digests[f"sha256:{name}"] = hashlib.sha256(some).hexdigest()
        data.append(some)
        at += len(some)
    text = json.dumps({"__metadata__": {"format": "pt", **digests}, **header}).encode()
    text += b" " * (-len(text) % 8)     # the data begin at a multiple of 8
    pathlib.Path(sys.argv[1]).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


if __name__ == "__main__":
    main()
