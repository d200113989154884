# SPDX-License-Identifier: Apache-2.0
"""Keras and TensorFlow's converter as clients: models made by them are converted, quantized, compiled, and run by TensorFlow's interpreter
with Reef as the Edge TPU.

Two networks with random weights: a classifier with preprocessing layers, and one with two inputs.
TensorFlow's converter writes each with full integers; Reef compiles it, and the Edge TPU's outputs may differ from those of TensorFlow's
reference kernels by a few steps of their scale, because the chip rounds otherwise. The classifier is also written as float32, float16 and with
dynamic ranges, which Reef quantizes by itself, and saved by Keras, which `reef convert` reads.

The interpreter that has TensorFlow is $REEF_PYTHON, or the one that runs this.
Usage: run_keras.py BUILD_FOLDER SOURCE_FOLDER         exit code 77: there is no TensorFlow
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

build, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
python = os.environ.get("REEF_PYTHON", sys.executable)

MAKE = """
import keras, numpy, tensorflow as tf
keras.utils.set_random_seed(0)
layers = keras.layers

photo = keras.Input((96, 96, 3), name='photo')
x = layers.Rescaling(1 / 127.5, offset=-1)(photo)
x = layers.RandomFlip()(x)
x = layers.Normalization(mean=[0, 0.1, 0.2], variance=[1, 1, 0.9])(x)
for filters in (16, 32, 64):
    x = layers.Activation('swish')(layers.BatchNormalization()(layers.Conv2D(filters, 3, strides=2, padding='same')(x)))
scores = layers.Dense(5, kernel_initializer='random_normal')(layers.GlobalAveragePooling2D()(x))
classifier = keras.Model(photo, scores)

picture, numbers = keras.Input((64, 64, 3), name='picture'), keras.Input((7,), name='numbers')
x = layers.Conv2D(16, 3, strides=2, activation='relu')(layers.Conv2D(16, 3, strides=2, activation='relu')(picture))
x = layers.Concatenate()([layers.GlobalAveragePooling2D()(x), layers.Dense(16, activation='relu')(numbers)])
two_inputs = keras.Model([picture, numbers], layers.Dense(3)(x))

random = numpy.random.default_rng(0)
def samples(model):
    for _ in range(16):
        yield [random.random((1, *each.shape[1:]), numpy.float32) * (255 if each.name == 'photo' else 1) for each in model.inputs]

def write(name, model, integers=False, **options):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    for option, value in options.items():
        setattr(converter, option, value)
    if integers:
        converter.optimizations, converter.representative_dataset = [tf.lite.Optimize.DEFAULT], lambda: samples(model)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    if name.endswith('float16'):
        converter.target_spec.supported_types = [tf.float16]
    with open(name + '.tflite', 'wb') as file:
        file.write(converter.convert())

for name, model in (('classifier', classifier), ('two_inputs', two_inputs)):
    write(name + '_integers', model, integers=True)
write('float32', classifier)
write('float16', classifier, optimizations=[tf.lite.Optimize.DEFAULT])
write('dynamic', classifier, optimizations=[tf.lite.Optimize.DEFAULT])
classifier.save('classifier.keras')
given = next(samples(classifier))[0]
given.tofile('given.bin')
classifier(given, training=False).numpy().tofile('wanted.bin')
"""

# The largest difference of an output of two files on ten random inputs, in steps of its scale.
COMPARE = """
import sys
import numpy, tensorflow as tf
source, compiled, library = sys.argv[1:]
on_cpu = tf.lite.Interpreter(source, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF)
on_chip = tf.lite.Interpreter(compiled, experimental_delegates=[tf.lite.experimental.load_delegate(library)])
random, most = numpy.random.default_rng(1), 0
on_cpu.allocate_tensors(), on_chip.allocate_tensors()
for _ in range(10):
    for one, other in zip(on_cpu.get_input_details(), on_chip.get_input_details(), strict=True):
        assert one['name'] == other['name']
        values = random.integers(-128, 128, one['shape'], numpy.int8)
        on_cpu.set_tensor(one['index'], values), on_chip.set_tensor(other['index'], values)
    on_cpu.invoke(), on_chip.invoke()
    for one, other in zip(on_cpu.get_output_details(), on_chip.get_output_details(), strict=True):
        wanted, found = on_cpu.get_tensor(one['index']).astype(int), on_chip.get_tensor(other['index']).astype(int)
        assert numpy.ptp(wanted) > 0
        most = max(most, int(abs(wanted - found).max()))
print(most)
"""


def run(folder, *command):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=1800,
                          env=dict(os.environ, REEF_PYTHON=python, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES=""))
    if done.returncode != 0:
        sys.exit(f"{command[0]} {command[1]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def main():
    if subprocess.run([python, "-c", "import tensorflow, keras"], capture_output=True).returncode != 0:
        print(f"{python} has no TensorFlow; REEF_PYTHON names one that has")
        return 77
    import array
    most_steps = 3
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(folder, python, "-c", MAKE)
        for model in ("classifier", "two_inputs"):
            file = f"{model}_integers.tflite"
            judged = json.loads(run(folder, build / "reef", "check", "--json", file).stdout)
            run(folder, build / "edgetpu_compiler", file)
            steps = int(run(folder, python, "-c", COMPARE, file, f"{model}_integers_edgetpu.tflite",
                            build / "coral/libedgetpu.so.1").stdout.splitlines()[-1])
            print(f"{model}: {judged['operators_on_edgetpu']} of {judged['operators']} operators on the Edge TPU; outputs differ from "
                  f"TensorFlow's by {steps} steps at most")
            if steps > most_steps or judged["operators_on_edgetpu"] < judged["operators"]:
                return 1
        for model in ("float32", "float16", "dynamic"):
            said = run(folder, build / "reef", "compile", f"{model}.tflite", "--data", source / "models/images", "-o", ".")
            if "the model scales its input itself" not in said.stderr:  # what is on the way to the file is told there
                sys.exit(f"{model}: the preprocessing layers were not seen:\n{said.stderr}")
            print(f"{model}: quantized and compiled, pixels go in as they are")
        run(folder, build / "reef", "convert", "classifier.keras", "-o", "converted.tflite")
        run(folder, build / "reef", "run", "converted.tflite", "--in", "given.bin", "--out", "found")
        wanted, found = (array.array("f", (folder / file).read_bytes()) for file in ("wanted.bin", "found/out0.bin"))
        off = max(abs(a - b) for a, b in zip(wanted, found, strict=True))
        print(f"classifier.keras by reef convert: outputs differ from Keras' by {off:.2g} at most")
        return 1 if off > 1e-4 * max(map(abs, wanted)) else 0


if __name__ == "__main__":
    sys.exit(main())
