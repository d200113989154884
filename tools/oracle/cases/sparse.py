# SPDX-License-Identifier: Apache-2.0
"""Tensors stored without their zeros."""

import numpy as np

from onemodel import Model, schema, seeded


def dimension(size=None, segments=None, indices=None):
    """Dense of a size, or compressed."""
    if size is not None:
        return schema.DimensionMetadataT(format=0, denseSize=size)

    def vector(values, narrow):
        kind = (schema.SparseIndexVector.Uint8Vector, schema.Uint8VectorT) if narrow and max(values) < 256 else \
               (schema.SparseIndexVector.Int32Vector, schema.Int32VectorT)
        return kind[0], kind[1](values=[int(v) for v in values])
    segment_type, segment_values = vector(segments, narrow=False)
    index_type, index_values = vector(indices, narrow=True)
    return schema.DimensionMetadataT(format=1, denseSize=0, arraySegmentsType=segment_type, arraySegments=segment_values,
                                     arrayIndicesType=index_type, arrayIndices=index_values)


def compressed(rows):
    """Segments and indices of what is not zero in each row, and the elements."""
    segments, indices, elements = [0], [], []
    for row in rows:
        for i, block in enumerate(row):
            if np.any(block != 0):
                indices.append(i)
                elements.append(block)
        segments.append(len(indices))
    return segments, indices, elements


def sparse_matrix(matrix, block):
    """Rows dense, columns compressed; in blocks of `block` columns where that is above 1."""
    rows, columns = matrix.shape
    segments, indices, elements = compressed(matrix.reshape(rows, columns // block, block))
    parts = [dimension(rows), dimension(segments=segments, indices=indices)]
    order, blocks = [0, 1], []
    if block > 1:
        parts.append(dimension(block))
        order.append(2)
        blocks.append(1)
    table = schema.SparsityParametersT(traversalOrder=order, blockMap=blocks, dimMetadata=parts)
    return np.concatenate([np.ravel(e) for e in elements]), table


def pruned(rng, shape, dtype, block):
    values = rng.randint(-100, 100, shape) if dtype == "int8" else rng.uniform(-1, 1, shape)
    rows = values.reshape(shape[0], -1, block)
    rows[rng.uniform(size=rows.shape[:2]) < 0.7] = 0
    rows[0, 0] = 1  # never all zeros
    return rows.reshape(shape)


def cases():
    for dtype in ("float32", "float16", "int8"):
        for block in (1, 4):
            name = f"{dtype}_block{block}"
            rng = seeded("DENSIFY " + name)
            elements, table = sparse_matrix(pruned(rng, [5, 12], dtype, block), block)
            scale = {"scale": 0.1, "zero_point": 0} if dtype == "int8" else {}
            m = Model()
            x = m.tensor("x", dtype, [5, 12], data=elements, extra={"sparsity": table}, **scale)
            y = m.output("y", dtype, [5, 12], **scale)
            m.op("DENSIFY", [x], [y])
            yield "DENSIFY", name, m, [], {}
    # Four dimensions, traversed in another order: columns of a filter before its rows.
    rng = seeded("DENSIFY order")
    filters = pruned(rng, [3, 2, 2, 4], "float32", 1)
    turned = filters.transpose(0, 2, 1, 3).reshape(12, 4)
    segments, indices, elements = compressed(turned[:, :, None])
    table = schema.SparsityParametersT(
        traversalOrder=[0, 2, 1, 3], blockMap=[],
        dimMetadata=[dimension(3), dimension(2), dimension(2), dimension(segments=segments, indices=indices)])
    m = Model()
    x = m.tensor("x", "float32", [3, 2, 2, 4], data=np.ravel(elements), extra={"sparsity": table})
    y = m.output("y", "float32", [3, 2, 2, 4])
    m.op("DENSIFY", [x], [y])
    yield "DENSIFY", "another_order", m, [], {}
