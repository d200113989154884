# SPDX-License-Identifier: Apache-2.0
"""Keras applications and small Keras networks for bench/breadth.py, written as float TFLite by TensorFlow's converter.

Weights are random (nothing is downloaded); batch norms are settled on pictures and shifted, as breadth_models.py does it.
A name is "keras_" and the name in keras.applications, or that of a function below.
"""
import pathlib

import numpy as np

SHIFT = 0.5

APPLICATIONS = {
    "MobileNet": 96, "MobileNetV2": 96, "MobileNetV3Small": 96, "MobileNetV3Large": 96, "EfficientNetB0": 96,
    "EfficientNetV2B0": 96, "NASNetMobile": 96, "ConvNeXtTiny": 64, "Xception": 96, "DenseNet121": 64, "InceptionV3": 96,
    "InceptionResNetV2": 96, "ResNet50": 64, "ResNet50V2": 64, "VGG16": 64, "EfficientNetV2S": 64,
}


def convolution(x, filters, stride=1, kernel=3, activation="relu"):
    from keras import layers
    x = layers.Conv2D(filters, kernel, stride, padding="same", use_bias=False)(x)
    return layers.Activation(activation)(layers.BatchNormalization()(x))


def unet(x):
    from keras import layers
    kept = []
    for filters in (16, 24, 32):
        x = convolution(convolution(x, filters), filters)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = convolution(x, 48)
    for filters, skip in zip((32, 24, 16), reversed(kept)):
        x = layers.Conv2DTranspose(filters, 2, 2, padding="same")(x)
        x = convolution(layers.Concatenate()([x, skip]), filters)
    return layers.Conv2D(3, 1, activation="softmax")(x)


def unet_upsampling(x):
    from keras import layers
    a = convolution(x, 16)
    b = convolution(layers.AveragePooling2D(2)(a), 24, activation="swish")
    c = convolution(layers.AveragePooling2D(2)(b), 32, activation="swish")
    b = convolution(layers.Concatenate()([layers.UpSampling2D(interpolation="bilinear")(c), b]), 24)
    a = convolution(layers.Add()([layers.UpSampling2D()(b), convolution(a, 24)]), 16)
    return layers.Conv2D(1, 1, activation="sigmoid")(a)


def autoencoder(x):
    from keras import layers
    for filters in (16, 24, 32):
        x = convolution(x, filters, 2, activation="leaky_relu")
    x = layers.Dense(24)(layers.Flatten()(x))
    x = layers.Reshape((12, 12, 32))(layers.Dense(12 * 12 * 32, activation="relu")(x))
    for filters in (24, 16, 8):
        x = layers.Conv2DTranspose(filters, 3, 2, padding="same", activation="relu")(x)
    return layers.Conv2D(3, 3, padding="same", activation="tanh")(x)


def separable(x):
    from keras import layers
    x = convolution(x, 16, 2)
    for filters in (24, 32, 48):
        y = layers.SeparableConv2D(filters, 3, padding="same", activation="elu")(x)
        x = layers.MaxPooling2D(3, 2, padding="same")(layers.Add()([y, layers.Conv2D(filters, 1)(x)]))
    return layers.Dense(10, activation="softmax")(layers.GlobalMaxPooling2D()(x))


def attention(x):
    from keras import layers
    x = layers.Conv2D(32, 16, 16)(x)
    x = layers.Reshape((-1, 32))(x)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 8)(y, y)])
        y = layers.Dense(64, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(32)(y)])
    return layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def group_normalized(x):
    from keras import layers
    for filters in (16, 32, 48):
        x = layers.Conv2D(filters, 3, 2, padding="same")(x)
        x = layers.Activation("silu")(layers.GroupNormalization(8)(x))
    return layers.Dense(10)(layers.GlobalAveragePooling2D()(x))


def recurrent(x):
    from keras import layers
    x = convolution(convolution(x, 8, 4), 16, 4)
    x = layers.Reshape((6, 96))(x)
    x = layers.Bidirectional(layers.LSTM(24, return_sequences=True))(x)
    return layers.Dense(12, activation="softmax")(layers.GRU(32)(x))


def keyword_spotter(x):
    from keras import layers
    x = layers.Conv2D(24, (10, 4), 2, padding="same", activation="relu")(x)
    for dilation in (1, 2, 4):
        x = layers.DepthwiseConv2D(3, padding="same", dilation_rate=dilation, depth_multiplier=1)(x)
        x = layers.ReLU(max_value=6)(layers.BatchNormalization()(layers.Conv2D(24, 1)(x)))
    return layers.Dense(12, activation="softmax")(layers.Dropout(0.3)(layers.Flatten()(layers.AveragePooling2D(4)(x))))


def temporal(x):
    from keras import layers
    x = layers.Reshape((96, 288))(x)
    x = layers.Conv1D(24, 5, padding="causal", activation="relu")(x)
    for dilation in (2, 4, 8):
        y = layers.Conv1D(24, 3, padding="causal", dilation_rate=dilation, activation="tanh")(x)
        x = layers.Add()([x, layers.SpatialDropout1D(0.1)(y)])
    return layers.Dense(4)(layers.GlobalAveragePooling1D()(x))


def upscaler(x):
    import tensorflow as tf
    from keras import layers
    x = layers.PReLU(shared_axes=[1, 2])(layers.Conv2D(24, 5, padding="same")(x))
    y = layers.PReLU(shared_axes=[1, 2])(layers.Conv2D(24, 3, padding="same")(x))
    y = layers.Conv2D(12, 3, padding="same")(layers.Add()([x, y]))
    return layers.Lambda(lambda t: tf.nn.depth_to_space(t, 2))(y)


def gated(x):
    """Squeeze and excite, spatial gates, cropping, padding, permutation."""
    from keras import layers
    x = convolution(layers.ZeroPadding2D(3)(x), 16, 2, 7)
    gate = layers.Dense(16, activation="hard_sigmoid")(layers.Dense(4, activation="relu")(layers.GlobalAveragePooling2D()(x)))
    x = layers.Multiply()([x, layers.Reshape((1, 1, 16))(gate)])
    x = layers.Multiply()([x, layers.Conv2D(1, 7, padding="same", activation="sigmoid")(x)])
    x = layers.Cropping2D(((1, 2), (2, 1)))(x)
    x = layers.Permute((2, 1, 3))(convolution(x, 24, 2, activation="mish"))
    x = layers.Maximum()([x, convolution(x, 24, activation="softplus")])
    x = layers.Subtract()([x, layers.AveragePooling2D(3, 1, padding="same")(x)])
    return layers.Dense(10)(layers.Flatten()(x))


NETWORKS = {f.__name__: f for f in (unet, unet_upsampling, autoencoder, separable, attention, group_normalized, recurrent,
                                    keyword_spotter, temporal, upscaler, gated)}
MODELS = {f"keras_{name}": 96 for name in NETWORKS} | {f"keras_{name}": side for name, side in APPLICATIONS.items()}


def build(name, side):
    import keras
    name = name.removeprefix("keras_")
    if name in APPLICATIONS:
        extra = {"include_preprocessing": False} if name.startswith(("MobileNetV3", "EfficientNetV2", "ConvNeXt")) else {}
        return getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), **extra)
    x = keras.Input((side, side, 3), batch_size=1)
    return keras.Model(x, NETWORKS[name](x))


def settle(model, pictures):
    """Moving means and variances from pictures, and a constant added (breadth_models.py says why)."""
    import keras
    import tensorflow as tf
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    random = np.random.default_rng(0)
    for layer in norms:
        layer.momentum = 0.0
        layer.beta.assign(SHIFT + 0.02 * random.normal(size=layer.beta.shape))
    if norms:
        batch = tf.keras.Model(model.inputs, model.outputs)
        batch(pictures if model.input_shape[0] is None else pictures[:1], training=True)


def export(name, side, pictures, path):
    """Pictures are channels-first, as PyTorch takes them."""
    import keras
    import tensorflow as tf
    keras.utils.set_random_seed(1)
    model = build(name, side)
    settle(model, np.moveaxis(pictures, 1, -1))
    fixed = keras.Input((side, side, 3), batch_size=1)
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model(fixed, model(fixed, training=False)))
    temporary = pathlib.Path(str(path) + ".part")
    temporary.write_bytes(converter.convert())
    temporary.rename(path)
