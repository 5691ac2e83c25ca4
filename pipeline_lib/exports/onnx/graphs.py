"""Builds graphs of ONNX operators, one node at a time.

A student's LSTM is not exported by tracing it: the result of a tracer or of torch's exporter is only correct for the
example's length (pytorch#191855).  Here it is ONNX's LSTM operator, which takes the length of each row.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    import onnx

OPSET, IR_VERSION = 18, 9
"""The opset of the newest operator used (``BitwiseXor``), and the IR version released with it."""
ROWS, COLUMNS = "rows", "columns"
Value = str | np.ndarray | torch.Tensor | Sequence[int]
"""The name of a node's output or of an input, or a constant."""


class Graph:
    """Inputs, constants and nodes, in the order in which they are added."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._named: dict[int, tuple[Value, str]] = {}

    def input(self, name: str, second: str = COLUMNS) -> str:
        """Add an input, int64 (rows, columns)."""
        from onnx import TensorProto, helper

        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, [ROWS, second]))
        return name

    def add(self, operator: str, *inputs: Value | None, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return the name of its output, or a list of names if there are several.

        :param inputs: names or constants; None for an optional one that is omitted.
        """
        from onnx import helper

        input_names = ["" if value is None else self._name(value) for value in inputs]
        names = [f"{operator.lower()}_{len(self._nodes)}_{n}" for n in range(outputs)]
        self._nodes.append(helper.make_node(operator, input_names, names, names[0], **attributes))
        return names[0] if outputs == 1 else names

    def cast(self, value: Value, kind: str) -> str:
        """Return a value in another number format: ``FLOAT``, ``INT64``, ``INT32``."""
        from onnx import TensorProto

        return self.add("Cast", value, to=getattr(TensorProto, kind))

    def linear(self, value: str, weight: torch.Tensor, bias: torch.Tensor | None) -> str:
        """Apply a linear layer, whose weight is (outputs, inputs), to the last axis."""
        product = self.add("MatMul", value, weight.T)
        return product if bias is None else self.add("Add", product, bias)

    def model(self, outputs: dict[str, tuple[str, int]]) -> "onnx.ModelProto":
        """Return the finished model.

        :param outputs: name to the value and its width; all are float (rows, width).
        """
        import onnx
        from onnx import TensorProto, helper

        nodes = [helper.make_node("Identity", [value], [n]) for n, (value, _) in outputs.items()]
        widths = {name: [ROWS, width] for name, (_, width) in outputs.items()}
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in widths.items()]
        constants = list(self._constants.values())
        graph = helper.make_graph([*self._nodes, *nodes], "student", self._inputs, infos, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return model

    def _name(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        if id(value) not in self._named:
            # The value is kept too, or another object could reuse the id of a deleted one.
            self._named[id(value)] = value, self._constant(value)
        return self._named[id(value)][1]

    def _constant(self, value: Value) -> str:
        from onnx import numpy_helper

        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().numpy()
        array = np.ascontiguousarray(value) if isinstance(value, np.ndarray) else np.array(value)
        name = f"constant_{len(self._constants)}"
        self._constants[name] = numpy_helper.from_array(array, name)
        return name
