#!/usr/bin/env python3
"""onnxruntime with its CUDA provider. Prints one line and ends with 77 where the provider is missing."""
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from client import Digest, rounds

if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
    print("onnxruntime: no CUDA provider here")
    sys.exit(77)
r = numpy.random.default_rng(0)
weights = [numpy_helper.from_array((r.standard_normal((256, 256)) * 0.05).astype(numpy.float32), f"w{i}") for i in range(3)]
nodes, last = [], "x"
for i in range(3):
    nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Sigmoid", [f"m{i}"], [f"s{i}"])]
    last = f"s{i}"
graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 256])],
                          [helper.make_tensor_value_info(last, TensorProto.FLOAT, [64, 256])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
digest = Digest()
for i in rounds():
    x = numpy.random.default_rng(i).standard_normal((64, 256)).astype(numpy.float32)
    digest.add("y", session.run(None, {"x": x})[0])
print("onnxruntime:", digest)
