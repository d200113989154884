#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small TensorFlow and Keras models of every kind of layer, written by every way of TensorFlow's converter.

    bench/tensorflow_ways.py FOLDER [--models PATTERN,...]

Each network becomes NAME.tflite (float), NAME_WAY.tflite (float16, dynamic, int8, int16x8, old, ...; the ways take turns, so
that each network is written in two of them), and NAME.samples.npz: samples for each input, stacked along a first axis.
bench/ways.py takes the folder through Reef. Weights are random; batch norms keep their initial statistics.
"""
import argparse
import fnmatch
import pathlib
import tempfile

import numpy as np

from trial import in_child

SAMPLES = 12


def pictures(random, shape):
    """Between 0 and 255: something coarse and something fine, brighter or darker."""
    coarse = random.uniform(0, 255, (4, 4, shape[-1]))
    rows, columns = (np.linspace(0, 3.99, size).astype(int) for size in shape[:2])
    return np.clip(coarse[rows][:, columns] + random.normal(0, 20, shape), 0, 255)


def waves(random, shape):
    slow = np.sin(np.linspace(0, random.uniform(1, 9), shape[-2] if len(shape) > 1 else shape[-1]) + random.uniform(0, 6))
    slow = slow[:, None] if len(shape) > 1 else slow
    return (slow + random.normal(0, 0.4, shape)) * random.uniform(0.4, 1.2)


# ---- Networks: name -> (input shapes, what samples look like, function of Keras tensors) ----

class Layers:
    """keras.layers, whose layers are made in the first run of a network and taken again, in the same order, in later ones:
    so that networks are plain functions, in which layers and TensorFlow's operations mix."""

    def __init__(self):
        self.made, self.turn = [], 0

    def __getattr__(self, name):
        import keras

        def make(*arguments, **options):
            self.turn += 1
            if self.turn > len(self.made):
                self.made.append(getattr(keras.layers, name)(*arguments, **options))
            return self.made[self.turn - 1]
        return make


L = Layers()


def networks():
    import tensorflow as tf
    made = {}

    def network(*shapes, samples=waves, batch=1):
        def keep(function):
            made[function.__name__] = (shapes, samples, batch, function)
            return function
        return keep

    def conv(x, n, k=3, s=1, act="relu"):
        return L.Activation(act)(L.BatchNormalization()(L.Conv2D(n, k, s, padding="same", use_bias=False)(x)))

    @network((45, 61, 3), samples=pictures)
    def rescaled_classifier(x):
        x = L.Rescaling(1 / 127.5, offset=-1)(x)
        x = conv(conv(x, 12, 3, 2), 20, 3, 2, "relu6")
        return L.Dense(7, activation="softmax")(L.GlobalAveragePooling2D()(L.Dropout(0.3)(x)))

    @network((64, 48, 3), samples=pictures)
    def normalized_resized(x):
        x = L.Normalization(mean=[120.0, 110.0, 100.0], variance=[3000.0, 2900.0, 3100.0])(x)
        x = L.CenterCrop(40, 44)(L.Resizing(56, 56)(x))
        return L.Dense(5)(L.Flatten()(conv(conv(x, 8, 5, 4), 8, 3, 2)))

    @network((33, 35, 3), samples=pictures)
    def augmented(x):
        x = L.SpatialDropout2D(0.2)(L.GaussianDropout(0.2)(L.Rescaling(1 / 255)(x)))
        return L.Dense(4)(L.GlobalMaxPooling2D()(conv(x, 8)))

    @network((20, 12))
    def lstm(x):
        return L.Dense(6, activation="softmax")(L.LSTM(16)(L.LSTM(24, return_sequences=True)(x)))

    @network((20, 12))
    def lstm_unrolled(x):
        return L.Dense(6)(L.LSTM(16, unroll=True)(x))

    @network((20, 12))
    def gru(x):
        return L.Dense(6, activation="sigmoid")(L.GRU(16)(L.GRU(24, return_sequences=True, reset_after=False)(x)))

    @network((11, 12))
    def gru_unrolled(x):
        return L.Dense(6)(L.GRU(16, unroll=True)(x))

    @network((15, 9))
    def simple_rnn(x):
        return L.Dense(3)(L.SimpleRNN(12, go_backwards=True)(L.SimpleRNN(14, return_sequences=True)(x)))

    @network((15, 9))
    def bidirectional(x):
        x = L.Bidirectional(L.LSTM(10, return_sequences=True), merge_mode="sum")(x)
        return L.TimeDistributed(L.Dense(5, activation="softmax"))(x)

    @network((4, 16, 16, 3))
    def conv_lstm(x):
        x = L.ConvLSTM2D(6, 3, padding="same", return_sequences=False)(x)
        return L.Conv2D(2, 1, activation="sigmoid")(x)

    @network((4, 24, 24, 3))
    def time_distributed(x):
        x = L.TimeDistributed(L.Conv2D(8, 3, 2, activation="relu"))(x)
        x = L.TimeDistributed(L.GlobalAveragePooling2D())(x)
        return L.Dense(4)(L.LSTM(8)(x))

    @network((6, 20, 20, 2))
    def conv3d(x):
        x = L.Conv3D(6, 3, padding="same", activation="relu")(x)
        x = L.Conv3D(8, (1, 3, 3), strides=(1, 2, 2), activation="relu")(x)
        return L.Dense(3)(L.GlobalAveragePooling3D()(x))

    @network((31, 29, 3))
    def separable_odd(x):
        x = L.SeparableConv2D(10, 3, padding="same", depth_multiplier=2, activation="selu")(x)
        x = L.DepthwiseConv2D(5, 2, padding="valid", depth_multiplier=3, activation="relu")(x)
        return L.Dense(5)(L.GlobalAveragePooling2D()(L.SeparableConv2D(12, 3, dilation_rate=2, activation="swish")(x)))

    @network((17, 23, 4))
    def transposed(x):
        x = conv(x, 12, 3, 2)
        x = L.Conv2DTranspose(10, 3, 2, padding="same", activation="relu")(x)
        x = L.Conv2DTranspose(6, 5, 3, padding="valid", output_padding=1)(x)
        return L.Conv2DTranspose(3, 4, 1, padding="same", activation="tanh")(x)

    @network((20, 21, 3))
    def transposed_dilated(x):
        return L.Conv2DTranspose(3, 3, 2, padding="same")(L.Conv2D(6, 3, dilation_rate=(2, 3), padding="same")(x))

    @network((60, 7))
    def causal_1d(x):
        for dilation in (1, 2, 4):
            y = L.Conv1D(12, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
            x = L.Add()([L.Conv1D(12, 1)(x), y])
        x = L.SeparableConv1D(10, 5, 2, activation="elu")(x)
        return L.Conv1DTranspose(4, 4, 2)(L.MaxPooling1D(3, 2)(x))

    @network((24, 16))
    def attention_mask(x):
        y = L.MultiHeadAttention(2, 8, output_shape=16)(x, x, use_causal_mask=True)
        x = L.LayerNormalization()(L.Add()([x, y]))
        return L.Dense(5)(L.GlobalMaxPooling1D()(L.Attention(use_scale=True)([x, x])))

    @network((24, 16))
    def grouped_query(x):
        y = L.GroupQueryAttention(8, 4, 2)(x, x)
        return L.AdditiveAttention()([y, x])

    @network((18, 18, 8))
    def norms(x):
        x = L.LayerNormalization(axis=[1, 2, 3])(L.Conv2D(12, 3)(x))
        x = L.GroupNormalization(4)(L.Conv2D(12, 3)(x))
        x = L.UnitNormalization()(L.GroupNormalization(-1)(L.Conv2D(12, 3)(x)))
        return L.RMSNormalization()(L.SpectralNormalization(L.Conv2D(6, 3))(x))

    @network((18, 18, 3))
    def activations(x):
        x = L.Conv2D(12, 3)(x)
        for name in ("elu", "selu", "softplus", "softsign", "hard_sigmoid", "hard_silu", "gelu", "mish", "leaky_relu", "log_sigmoid",
                     "celu", "glu", "squareplus", "tanh_shrink", "soft_shrink", "sparse_plus", "exponential", "relu6"):
            x = L.Conv2D(12, 1)(L.Activation(name)(x))
        return x

    @network((14, 14, 6))
    def activations_more(x):
        x = L.Conv2D(12, 3)(x)
        for layer in (L.PReLU(), L.PReLU(shared_axes=[1, 2]), L.LeakyReLU(0.3), L.ReLU(6, negative_slope=0.1), L.ReLU(threshold=0.5),
                      L.ELU(0.5), L.Softmax(), L.Softmax(axis=[1, 2]), L.ReLU(max_value=3.0)):
            x = L.Conv2D(12, 1)(layer(x))
        return L.Activation("log_softmax")(L.Flatten()(x))

    @network((16, 16, 6), (16, 16, 6))
    def merges(a, b):
        x = L.Concatenate()([L.Add()([a, b]), L.Subtract()([a, b]), L.Multiply()([a, b]), L.Average()([a, b]), L.Maximum()([a, b]),
                             L.Minimum()([a, b])])
        x = L.Conv2D(8, 3)(x)
        return L.Dot(1, normalize=True)([L.Flatten()(x), L.Flatten()(L.Conv2D(8, 3)(a))])

    @network((16, 18, 6))
    def moves(x):
        x = L.Permute((2, 1, 3))(L.ZeroPadding2D(((1, 2), (0, 3)))(x))
        x = L.UpSampling2D((2, 3), interpolation="bilinear")(L.Cropping2D(((1, 1), (2, 0)))(x))
        x = L.Conv2D(8, 3, 2)(x)
        x = L.RepeatVector(3)(L.GlobalAveragePooling2D()(x))
        return L.Reshape((6, 4))(L.Flatten()(x))

    @network((16, 18, 4))
    def upsampling(x):
        rows = [L.UpSampling2D(3, interpolation=kind)(L.Conv2D(3, 3)(x)) for kind in ("nearest", "bilinear")]
        return L.Concatenate()(rows)

    @network((30,))
    def dense(x):
        x = L.Dense(40, activation="gelu")(x)
        return L.Dense(3, activation="softmax")(L.BatchNormalization()(L.Dense(20, activation="relu")(L.GaussianNoise(0.1)(x))))

    @network((30,), batch=None)
    def open_batch(x):
        return L.Dense(3)(L.Dense(17, activation="relu")(x))

    @network((28, 28, 1), batch=None)
    def open_batch_convnet(x):
        return L.Dense(10, activation="softmax")(L.Flatten()(L.MaxPooling2D()(conv(x, 8))))

    @network((None, None, 3), samples=None, batch=1)
    def open_size(x):
        return L.Dense(4)(L.GlobalAveragePooling2D()(conv(conv(x, 8, 3, 2), 8)))

    @network((40, 40, 3))
    def many_outputs(x):
        a = conv(x, 8, 3, 2)
        b = conv(a, 12, 3, 2)
        return {"mask": L.Conv2D(1, 1, activation="sigmoid")(a), "scores": L.Dense(4, activation="softmax")(L.Flatten()(b)),
                "points": L.Dense(6)(L.GlobalAveragePooling2D()(b)), "same": b}

    @network((48, 48, 3))
    def locally(x):
        x = L.Conv2D(16, 3, 2, groups=4)(x[..., :1] * tf.ones((1, 1, 1, 4)))
        x = tf.nn.local_response_normalization(x)
        return tf.reduce_max(tf.nn.space_to_depth(x[:, :20, :20], 4), -1)

    @network((24, 24, 4))
    def tf_functions(x):
        y = tf.nn.space_to_depth(x, 2)
        y = tf.nn.relu(y) + tf.reverse(y, [1]) * tf.math.rsqrt(tf.square(y) + 1)
        y = tf.nn.depth_to_space(tf.pad(y, [[0, 0], [1, 1], [2, 0], [0, 0]], "SYMMETRIC"), 2)
        y = tf.where(y > 0.1, y, tf.sin(y)) + tf.cumsum(y, 1) * 0.1
        z = tf.math.l2_normalize(y, -1) + tf.roll(y, 1, 2) - tf.math.floor(y)
        return tf.einsum("nhwc,nhwd->ncd", z, y), tf.math.top_k(tf.reshape(y, (1, -1)), 5)[0], tf.argmax(y, -1)

    @network((24, 24, 4))
    def tf_math(x):
        y = tf.exp(-tf.abs(x)) + tf.math.log1p(tf.square(x)) + tf.sqrt(tf.abs(x) + 1) / (1 + tf.abs(x))
        y = tf.clip_by_value(y, 0.2, 2) ** 2 + tf.sign(x) * 0.1 + tf.cos(x) + tf.atan2(x, 1.0 + y)
        y = tf.stack(tf.unstack(y, axis=-1)[::-1], -1) + tf.tile(y[:, :1], (1, 24, 1, 1)) + tf.round(y) + tf.math.ceil(x)
        return tf.reduce_prod(tf.math.tanh(y), 1), tf.reduce_any(y > 1, 2), tf.cast(y * 10, tf.int32), tf.math.floormod(y, 0.7)

    @network((20, 8))
    def control_flow(x):
        total = tf.reduce_sum(x)
        y = tf.cond(total > 0, lambda: x * 2, lambda: x - 1)
        _, y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v) + 0.1), (0, y))
        return L.Dense(4)(y)

    @network((20, 8))
    def loop_by_value(x):
        _, y = tf.while_loop(lambda i, v: tf.reduce_sum(v) < 50.0, lambda i, v: (i + 1, v + 0.5), (0, x), maximum_iterations=20)
        return L.Conv1D(4, 3)(y)

    @network((12,))
    def tokens(x):
        ids = tf.cast(tf.clip_by_value(tf.abs(x) * 20, 0, 49), tf.int32)
        y = L.Embedding(50, 16)(ids)
        y = y + L.Embedding(12, 16)(tf.range(12))
        return L.Dense(3)(L.GlobalAveragePooling1D()(L.Conv1D(8, 3, activation="relu")(y)))

    @network((256,))
    def spectrum(x):
        y = tf.signal.stft(x, 64, 32)
        y = tf.math.log(tf.abs(y) + 1e-3)
        return L.Dense(5)(L.Flatten()(L.Conv2D(8, 3, 2, activation="relu")(y[..., None])))

    @network((24, 24, 3))
    def mobile_block(x):
        x = conv(x, 16, 3, 2, "hard_silu")
        y = L.DepthwiseConv2D(3, padding="same")(conv(x, 48, 1, 1, "hard_silu"))
        gate = L.Conv2D(48, 1, activation="hard_sigmoid")(L.Conv2D(12, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(y)))
        x = L.Add()([x, L.Conv2D(16, 1)(L.Multiply()([y, gate]))])
        return L.Dense(6)(L.Flatten()(L.GlobalAveragePooling2D(keepdims=True)(x)))

    @network((32, 32, 3))
    def shuffle_block(x):
        x = conv(x, 16, 3, 2)
        a, b = tf.split(x, 2, -1)
        x = tf.concat([a, conv(L.DepthwiseConv2D(3, padding="same")(conv(b, 8, 1)), 8, 1)], -1)
        x = tf.reshape(tf.transpose(tf.reshape(x, (1, 16, 16, 2, 8)), (0, 1, 2, 4, 3)), (1, 16, 16, 16))
        return L.Dense(6)(L.GlobalAveragePooling2D()(x))

    @network((40, 40, 3))
    def yolo_like(x):
        a = conv(conv(x, 8, 3, 2, "silu"), 16, 3, 2, "silu")
        b = conv(a, 24, 3, 2, "silu")
        a = L.Concatenate()([a, tf.image.resize(b, (10, 10), "nearest")])
        rows = []
        for y, size in ((a, 10), (b, 5)):
            y = tf.reshape(L.Conv2D(21, 1)(y), (1, size * size * 3, 7))
            rows.append(tf.concat([tf.sigmoid(y[..., :2]) * 2 - 0.5, tf.square(tf.sigmoid(y[..., 2:4]) * 2), tf.sigmoid(y[..., 4:])], -1))
        return tf.concat(rows, 1)

    @network((40, 40, 3))
    def ssd_like(x):
        x = conv(conv(x, 8, 3, 2), 16, 3, 2)
        boxes = tf.reshape(L.Conv2D(12, 3, padding="same")(x), (1, 300, 4))
        scores = tf.sigmoid(tf.reshape(L.Conv2D(9, 3, padding="same")(x), (1, 300, 3)))
        best = tf.image.non_max_suppression(boxes[0], tf.reduce_max(scores, -1)[0], 10)
        return boxes, scores, best

    return made


def as_module(entry):
    """The network as a tf.Module with one signature; its layers exist."""
    import tensorflow as tf
    shapes, _, batch, function = entry
    L.made, L.turn = [], 0

    class Network(tf.Module):
        pass
    network = Network()

    def forward(*tensors):
        L.turn = 0
        result = function(*tensors)
        return result if isinstance(result, dict) else {f"output_{i}": y for i, y in enumerate(result)} \
            if isinstance(result, (tuple, list)) else {"output": result}
    forward(*[tf.zeros([1 if d is None else d for d in (batch, *(40 if d is None else d for d in shape))]) for shape in shapes])
    network.layers = list(L.made)
    network.forward = tf.function(forward, input_signature=[tf.TensorSpec((batch, *shape), name=f"input_{i}")
                                                            for i, shape in enumerate(shapes)])
    return network


WAYS = ("float16", "int8", "dynamic", "int16x8", "saved_model", "int8_float_io", "uint8_io", "per_tensor")


def convert(network, samples, way):
    import tensorflow as tf
    function = network.forward.get_concrete_function()
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)  # otherwise variables stay, and nobody sets them
    if way == "saved_model":
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(tf.Module(), folder, signatures={"serving_default": frozen, "again": frozen})
            return tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["serving_default", "again"]).convert()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if way in ("float16", "dynamic", "int8", "int8_float_io", "int16x8", "uint8_io"):
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if way == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if way in ("int8", "int8_float_io", "uint8_io", "int16x8"):
        converter.representative_dataset = lambda: ([s[i][None] for s in samples] for i in range(8))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8] if way != "int16x8" else \
            [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]
        if way == "int8_float_io":
            converter.target_spec.supported_ops.append(tf.lite.OpsSet.TFLITE_BUILTINS)
    if way in ("int8", "uint8_io"):
        converter.inference_input_type = converter.inference_output_type = tf.int8 if way == "int8" else tf.uint8
    if way == "per_tensor":
        converter._experimental_disable_per_channel = True
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([s[i][None] for s in samples] for i in range(8))
    return converter.convert()


def samples_of(entry, name):
    shapes, kind, _, _ = entry
    result = []
    for number, shape in enumerate(shapes):
        shape = tuple(40 if d is None else d for d in shape)
        rows = [(kind or waves)(np.random.default_rng(100 * number + i), shape) for i in range(SAMPLES)]
        result.append(np.stack(rows).astype(np.float32))
    return result


def write(entry, number, name, way, path):
    import keras
    keras.utils.set_random_seed(number)
    samples = samples_of(entry, name)
    np.savez(path.parent / f"{name}.samples.npz", **{f"input_{i}": s[:, None] for i, s in enumerate(samples)})
    path.write_bytes(convert(as_module(entry), samples, way))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default="*", help="patterns with *, separated by commas")
    parser.add_argument("--ways", type=int, default=2, help="of how many besides float each network is written")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    import keras  # noqa: F401  before processes are forked: it takes seconds
    for number, (name, entry) in enumerate(networks().items()):
        if not any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models.split(",")):
            continue
        for way in ("float", *dict.fromkeys(WAYS[(number * 3 + 5 * k) % len(WAYS)] for k in range(arguments.ways))):
            path = arguments.folder / (f"{name}.tflite" if way == "float" else f"{name}_{way}.tflite")
            if path.exists():
                continue
            said = in_child(write, entry, number, name, way, path)
            if said:
                print(f"{path.name}: not written: {said}", flush=True)


if __name__ == "__main__":
    main()
