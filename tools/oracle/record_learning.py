# SPDX-License-Identifier: Apache-2.0
"""Records what NumPy, in double precision, makes of the definitions in src/learn: tests/data/learning.json.

Imprinting: normalized mean of normalized rows. Softmax regression: the minimum of the regularized loss, by Newton's
method until the gradient vanishes, on rows divided by their mean length (weights are given for the rows as they are).
"""

import json
import os

import numpy as np


def normalized(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def softmax_regression(rows, labels, classes, l2, class_weights):
    unit = np.linalg.norm(rows, axis=1).mean()
    x = np.concatenate([rows / unit, np.ones((len(rows), 1))], axis=1)
    count, width = x.shape
    truth = np.eye(classes)[labels]
    share = class_weights[labels] / class_weights[labels].sum()
    strength = np.full((classes, width), l2)
    strength[:, -1] = 0
    theta = np.zeros((classes, width))
    for _ in range(100):
        scores = x @ theta.T
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        gradient = ((p - truth) * share[:, None]).T @ x + strength * theta
        hessian = np.zeros((classes * width, classes * width))
        for a in range(classes):
            for b in range(classes):
                curve = share * p[:, a] * ((a == b) - p[:, b])
                hessian[a * width:(a + 1) * width, b * width:(b + 1) * width] = (x * curve[:, None]).T @ x
        hessian += np.diag(strength.ravel())
        step = np.linalg.lstsq(hessian, gradient.ravel(), rcond=1e-12)[0]
        theta -= step.reshape(theta.shape)
        if np.abs(gradient).max() < 1e-12:
            break
    weights, biases = theta[:, :-1] / unit, theta[:, -1]
    return weights, biases - biases.mean()


def case(seed, classes, dimension, per_class, l2, weighted):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 2, (classes, dimension))
    labels = np.repeat(np.arange(classes), per_class)
    rows = np.maximum(centres[labels] + rng.normal(0, 0.9, (len(labels), dimension)), 0).astype(np.float32)
    class_weights = rng.uniform(0.5, 2, classes) if weighted else np.ones(classes)
    weights, biases = softmax_regression(rows.astype(float), labels, classes, l2, class_weights)
    means = np.stack([normalized(rows.astype(float))[labels == c].mean(0) for c in range(classes)])
    numbers = lambda a: [float(f'{v:.9g}') for v in np.ravel(a)]
    return {
        'classes': classes, 'dimension': dimension, 'l2': l2, 'class_weights': numbers(class_weights),
        'labels': labels.tolist(), 'rows': numbers(rows), 'imprinted': numbers(normalized(means)),
        'sum_lengths': numbers(np.linalg.norm(means * per_class, axis=1)),
        'weights': numbers(weights), 'biases': numbers(biases),
    }


def main():
    cases = [case(1, 3, 8, 10, 1e-2, False), case(2, 4, 19, 6, 1e-3, True), case(3, 2, 33, 12, 1e-1, False)]
    path = os.path.join(os.path.dirname(__file__), '../../tests/data/learning.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'about': 'NumPy on the definitions of src/learn; made by tools/oracle/record_learning.py',
                   'cases': cases}, file)
        file.write('\n')


if __name__ == '__main__':
    main()
