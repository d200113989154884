# SPDX-License-Identifier: Apache-2.0
"""Control flow and variables: IF, WHILE, CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE.

The bodies are trivial arithmetic; what is tested is which subgraph runs, on what, how often, what shapes its results
have, and what a variable holds when.
"""

import numpy as np

from onemodel import Model, seeded

REFUSED = {"expect_error": True}


def f32(*numbers):
    return np.array(numbers, np.float32)


def i32(*numbers):
    return np.array(numbers, np.int32)


def branch(m, name, operator, shape, dtype="float32", result_shape=None, **fields):
    """Subgraph (a, b) -> operator(a, b)."""
    g = m.subgraph(name)
    a, b = g.input("a", dtype, shape), g.input("b", dtype, shape)
    g.op(operator, [a, b], [g.output("r", dtype, result_shape or shape)], **fields)
    return g


# ---- IF ----

def if_model(then_branch, else_branch, shape, dtype="float32", result_shape=None):
    """Branches: (operator, result shape, fields)."""
    m = Model()
    graphs = [branch(m, n, op, shape, dtype, result, **fields)
              for n, (op, result, fields) in (("then", then_branch), ("else", else_branch))]
    c, a, b = m.input("c", "bool", [1]), m.input("a", dtype, shape), m.input("b", dtype, shape)
    m.op("IF", [c, a, b], [m.output("y", dtype, result_shape or shape)], then_subgraph_index=graphs[0].index,
         else_subgraph_index=graphs[1].index)
    return m


def if_cases():
    add, mul = ("ADD", None, {}), ("MUL", None, {})
    join = ("CONCATENATION", [4], {"axis": 0})
    rng = seeded("IF")
    for condition in (False, True):
        word = str(condition).lower()
        for dtype in ("float32", "int32"):
            values = [rng.randint(-9, 10, 3).astype(dtype) for _ in range(2)]
            yield "IF", f"{dtype}_{word}", if_model(add, mul, [3], dtype), [[condition], *values]
        values = [f32(1, 2), f32(3, 4)]
        yield "IF", f"shapes_differ_{word}", if_model(add, join, [2]), [[condition], *values]
        yield "IF", f"both_grow_{word}", if_model(join, join, [2], result_shape=[4]), [[condition], *values]
        yield "IF", f"resized_{word}", if_model(add, mul, [2]), [[condition], f32(1, 2, 3), f32(3, 4, 5)]
    inputs = [[True], f32(1, 2), f32(3, 4), [False], f32(5, 6), f32(7, 8), [True], f32(9, 10), f32(11, 12)]
    yield "IF", "condition_changes", if_model(add, mul, [2]), inputs, {"invocations": 3}
    yield "IF", "shapes_change", if_model(add, join, [2]), inputs, {"invocations": 3}
    for first in (False, True):
        for second in (False, True):
            yield "IF", f"nested_{str(first).lower()}_{str(second).lower()}", nested_if(), [[first], [second], f32(2, 3), f32(5, 7)]
    yield "IF", "after_reshape", if_after_reshape(), [v for k in range(3) for v in ([k == 1], i32(2), f32(k, 1), f32(2, 3))], \
        {"invocations": 3}
    m = Model()
    c, a = m.input("c", "bool", [1]), m.input("a", "float32", [2])
    m.op("IF", [c, a], [m.output("y", "float32", [2])], then_subgraph_index=5, else_subgraph_index=6)
    yield "IF", "refused_no_such_subgraph", m, [[True], f32(1, 2)], REFUSED


def if_after_reshape():
    """Operands of a shape known only at run time, and branches of different shapes."""
    m = Model()
    graphs = [branch(m, "then", "ADD", [2]), branch(m, "else", "CONCATENATION", [2], result_shape=[4], axis=0)]
    c, shape = m.input("c", "bool", [1]), m.input("shape", "int32", [1])
    operands = []
    for name in "ab":
        operands.append(m.tensor(f"{name}_reshaped", "float32", [2]))
        m.op("RESHAPE", [m.input(name, "float32", [2]), shape], [operands[-1]])
    m.op("IF", [c, *operands], [m.output("y", "float32", [2])], then_subgraph_index=graphs[0].index,
         else_subgraph_index=graphs[1].index)
    return m


def nested_if():
    """c ? (d ? a + b : a - b) : a * b"""
    m = Model()
    outer_then = m.subgraph("outer_then")
    product = m.subgraph("outer_else")
    plus, minus = branch(m, "plus", "ADD", [2]), branch(m, "minus", "SUB", [2])
    for g in (outer_then, product):
        d, a, b = g.input("d", "bool", [1]), g.input("a", "float32", [2]), g.input("b", "float32", [2])
        r = g.output("r", "float32", [2])
        if g is outer_then:
            g.op("IF", [d, a, b], [r], then_subgraph_index=plus.index, else_subgraph_index=minus.index)
        else:
            g.op("MUL", [a, b], [r])
    c, d = m.input("c", "bool", [1]), m.input("d", "bool", [1])
    a, b = m.input("a", "float32", [2]), m.input("b", "float32", [2])
    m.op("IF", [c, d, a, b], [m.output("y", "float32", [2])], then_subgraph_index=outer_then.index,
         else_subgraph_index=product.index)
    return m


# ---- WHILE ----

def condition_below_limit(m, limit, value_shape, dtype):
    """Subgraph (i, value) -> i < limit."""
    g = m.subgraph("condition")
    i, _ = g.input("i", "int32", [1]), g.input("value", dtype, value_shape)
    g.op("LESS", [i, g.const("limit", i32(limit))], [g.output("r", "bool", [1])])
    return g


def while_model(limit, operator, shape, dtype="float32", *, swap=False, **fields):
    """(i, value) -> (i + 1, operator(value, constant)) while i < limit."""
    m = Model()
    condition = condition_below_limit(m, limit, shape, dtype)
    g = m.subgraph("body")
    i, value = g.input("i", "int32", [1]), g.input("value", dtype, shape)
    constant = g.const("k", np.array([2, 3], dtype))
    next_i, result = g.tensor("next_i", "int32", [1]), g.tensor("r", dtype, shape)
    g.op("ADD", [i, g.const("one", i32(1))], [next_i])
    g.op(operator, [constant, value] if swap else [value, constant], [result], **fields)
    g.output(next_i)
    g.output(result)
    i, value = m.input("i", "int32", [1]), m.input("value", dtype, shape)
    m.op("WHILE", [i, value], [m.output("i_out", "int32", [1]), m.output("y", dtype, shape)],
         cond_subgraph_index=condition.index, body_subgraph_index=g.index)
    return m


def while_cases():
    for dtype in ("float32", "int32"):
        for start in (0, 4, 5, 9):
            yield "WHILE", f"{dtype}_from_{start}", while_model(5, "ADD", [2], dtype), [i32(start), np.array([1, -1], dtype)]
    yield "WHILE", "product", while_model(6, "MUL", [2]), [i32(0), f32(1, 0.5)]
    yield "WHILE", "order_of_operands", while_model(3, "SUB", [2], swap=True), [i32(0), f32(1, 0.5)]
    for start in (0, 2, 3):
        yield "WHILE", f"grows_from_{start}", while_model(3, "CONCATENATION", [2], axis=0), [i32(start), f32(9, 8)]
    yield "WHILE", "repeated", while_model(3, "ADD", [2]), [i32(0), f32(1, 2), i32(2), f32(3, 4), i32(7), f32(5, 6)], {"invocations": 3}
    yield "WHILE", "grows_repeatedly", while_model(3, "CONCATENATION", [2], axis=0), \
        [i32(0), f32(1, 2), i32(2), f32(3, 4), i32(7), f32(5, 6)], {"invocations": 3}
    yield "WHILE", "swaps_values", swapping_loop(), [i32(0), f32(1, 2), f32(3, 4)]
    yield "WHILE", "if_inside", loop_with_if(), [i32(0), f32(1, 2)]
    yield "WHILE", "loop_inside", loop_in_loop(), [i32(0), f32(1, 2)]


def swapping_loop():
    """(i, a, b) -> (i + 1, b, a + b) while i < 4: results that are other inputs must not be overwritten too early."""
    m = Model()
    c = m.subgraph("condition")
    i, _, _ = c.input("i", "int32", [1]), c.input("a", "float32", [2]), c.input("b", "float32", [2])
    c.op("LESS", [i, c.const("limit", i32(4))], [c.output("r", "bool", [1])])
    g = m.subgraph("body")
    i, a, b = g.input("i", "int32", [1]), g.input("a", "float32", [2]), g.input("b", "float32", [2])
    next_i, total = g.tensor("next_i", "int32", [1]), g.tensor("sum", "float32", [2])
    g.op("ADD", [i, g.const("one", i32(1))], [next_i])
    g.op("ADD", [a, b], [total])
    for t in (next_i, b, total):
        g.output(t)
    inputs = [m.input("i", "int32", [1]), m.input("a", "float32", [2]), m.input("b", "float32", [2])]
    outputs = [m.output("i_out", "int32", [1]), m.output("a_out", "float32", [2]), m.output("b_out", "float32", [2])]
    m.op("WHILE", inputs, outputs, cond_subgraph_index=c.index, body_subgraph_index=g.index)
    return m


def loop_with_if():
    """(i, v) -> (i + 1, i < 2 ? v + v : v * v) while i < 4"""
    m = Model()
    condition = condition_below_limit(m, 4, [2], "float32")
    plus, times = branch(m, "plus", "ADD", [2]), branch(m, "times", "MUL", [2])
    g = m.subgraph("body")
    i, v = g.input("i", "int32", [1]), g.input("v", "float32", [2])
    early, next_i, result = g.tensor("early", "bool", [1]), g.tensor("next_i", "int32", [1]), g.tensor("r", "float32", [2])
    g.op("LESS", [i, g.const("two", i32(2))], [early])
    g.op("ADD", [i, g.const("one", i32(1))], [next_i])
    g.op("IF", [early, v, v], [result], then_subgraph_index=plus.index, else_subgraph_index=times.index)
    g.output(next_i)
    g.output(result)
    i, v = m.input("i", "int32", [1]), m.input("v", "float32", [2])
    m.op("WHILE", [i, v], [m.output("i_out", "int32", [1]), m.output("y", "float32", [2])],
         cond_subgraph_index=condition.index, body_subgraph_index=g.index)
    return m


def loop_in_loop():
    """Three rounds of: an inner loop of three additions, started from 0 each time."""
    m = Model()
    outer, inner = condition_below_limit(m, 3, [2], "float32"), condition_below_limit(m, 3, [2], "float32")
    body, inner_body = m.subgraph("body"), m.subgraph("inner_body")
    for g in (body, inner_body):
        i, v = g.input("i", "int32", [1]), g.input("v", "float32", [2])
        next_i, result = g.tensor("next_i", "int32", [1]), g.tensor("r", "float32", [2])
        g.op("ADD", [i, g.const("one", i32(1))], [next_i])
        if g is inner_body:
            g.op("ADD", [v, g.const("k", f32(1, 0.25))], [result])
        else:
            unused, zero = g.tensor("unused", "int32", [1]), g.const("zero", i32(0))
            g.op("WHILE", [zero, v], [unused, result], cond_subgraph_index=inner.index, body_subgraph_index=inner_body.index)
        g.output(next_i)
        g.output(result)
    i, v = m.input("i", "int32", [1]), m.input("v", "float32", [2])
    m.op("WHILE", [i, v], [m.output("i_out", "int32", [1]), m.output("y", "float32", [2])],
         cond_subgraph_index=outer.index, body_subgraph_index=body.index)
    return m


# ---- variables ----

def handle(graph, name, container="c"):
    h = graph.tensor(f"handle_{name}", "resource", [1])
    graph.op("VAR_HANDLE", [], [h], container=container, shared_name=name)
    return h


def initialized(m, values):
    """CALL_ONCE of a subgraph that assigns the constants in `values`, by variable name."""
    g = m.subgraph("initialize")
    for name, value in values.items():
        g.op("ASSIGN_VARIABLE", [handle(g, name), g.const(f"initial_{name}", value)], [])
    m.op("CALL_ONCE", [], [], init_subgraph_index=g.index)


def accumulator(dtype="float32"):
    """total += x; gives the new total. The total starts as [10, 20]."""
    m = Model()
    x = m.input("x", dtype, [2])
    initialized(m, {"total": np.array([10, 20], dtype)})
    h = handle(m, "total")
    old, new = m.tensor("old", dtype, [2]), m.tensor("new", dtype, [2])
    m.op("READ_VARIABLE", [h], [old])
    m.op("ADD", [old, x], [new])
    m.op("ASSIGN_VARIABLE", [h, new], [])
    m.op("READ_VARIABLE", [h], [m.output("y", dtype, [2])])
    return m


def two_variables():
    """Swaps a and b in every invocation, and gives both; each is read through another handle than it was assigned by."""
    m = Model()
    x = m.input("x", "float32", [2])
    initialized(m, {"a": f32(1, 2), "b": f32(3, 4)})
    old = {}
    for name in "ab":
        old[name] = m.tensor(f"old_{name}", "float32", [2])
        m.op("READ_VARIABLE", [handle(m, name)], [old[name]])
    shifted = m.tensor("shifted", "float32", [2])
    m.op("ADD", [old["a"], x], [shifted])
    m.op("ASSIGN_VARIABLE", [handle(m, "b"), shifted], [])
    m.op("ASSIGN_VARIABLE", [handle(m, "a"), old["b"]], [])
    for name in "ab":
        m.op("READ_VARIABLE", [handle(m, name)], [m.output(f"y_{name}", "float32", [2])])
    return m


def variable_cases():
    steps = [f32(1, 2), f32(3, 4), f32(5, 6)]
    for dtype in ("float32", "int32", "int64"):
        yield "CALL_ONCE", f"accumulates_{dtype}", accumulator(dtype), [s.astype(dtype) for s in steps], {"invocations": 3}
    yield "CALL_ONCE", "once", accumulator(), steps[:1]
    yield "VAR_HANDLE", "two_variables", two_variables(), steps, {"invocations": 3}
    for dtype in ("float32", "int32", "int64", "int8", "bool"):
        m = Model()
        x = m.input("x", dtype, [3])
        h = handle(m, "v")
        m.op("ASSIGN_VARIABLE", [h, x], [])
        m.op("READ_VARIABLE", [h], [m.output("y", dtype, [3])])
        yield "ASSIGN_VARIABLE", dtype, m, [np.array([1, 0, 1], dtype)]
    yield "READ_VARIABLE", "containers_apart", same_name_in_two_containers(), [f32(1, 2)]
    m = Model()
    m.input("x", "float32", [2])
    m.op("READ_VARIABLE", [handle(m, "never")], [m.output("y", "float32", [2])])
    yield "READ_VARIABLE", "refused_before_assignment", m, [f32(1, 2)], REFUSED


def same_name_in_two_containers():
    m = Model()
    x = m.input("x", "float32", [2])
    double = m.tensor("double", "float32", [2])
    m.op("ADD", [x, x], [double])
    handles = [handle(m, "v", container) for container in ("first", "second")]
    for h, value in zip(handles, (x, double)):
        m.op("ASSIGN_VARIABLE", [h, value], [])
    for k, h in enumerate(handles):
        m.op("READ_VARIABLE", [h], [m.output(f"y{k}", "float32", [2])])
    return m


def cases():
    yield from if_cases()
    yield from while_cases()
    yield from variable_cases()
