# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for files of google-coral/test_data that a checkout lacks: stored copies often leave out what is larger than 4 MiB.

PyCoral's tests name these files and look at the answers. What Google cut in two is joined again, and is Google's network with Google's
weights. For the others something stands in that gives the answer wanted, so that the interface they use is still tried: a smaller
classifier or detector in the form of the missing one (floats at the border, outputs in another order with a signature), or a U-Net that learned
its one picture by heart. What nothing stands in for (a detector of faces, one of breeds, a classifier whose scores its own factor before the
softmax makes) stays absent, and the test says so.
"""

import os
import pathlib
import shutil
import subprocess

# A U-Net of three scales that learns the one picture of the test; the last numbers of a pixel are its classes.
LEARN_BY_HEART = """
import sys
import numpy
import torch
from PIL import Image
picture, mask, path = sys.argv[1:]
wanted = torch.tensor(numpy.asarray(Image.open(mask)).astype(numpy.int64))[None]
size = wanted.shape[2], wanted.shape[1]
pixels = torch.tensor(numpy.asarray(Image.open(picture).convert('RGB').resize(size), numpy.float32) / 255)[None]
def layer(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU6())
class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down = torch.nn.ModuleList([layer(3, 16), layer(16, 32), layer(32, 64)])
        self.up = torch.nn.ModuleList([torch.nn.ConvTranspose2d(64, 32, 2, 2), torch.nn.ConvTranspose2d(32, 16, 2, 2)])
        self.join = torch.nn.ModuleList([layer(64, 32), layer(32, 16)])
        self.last = torch.nn.Conv2d(16, 3, 1)
    def forward(self, x):
        x, kept = self.down[0](x.permute(0, 3, 1, 2)), []
        for down in self.down[1:]:
            kept.append(x)
            x = down(torch.nn.functional.max_pool2d(x, 2))
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.last(x).permute(0, 2, 3, 1)
torch.manual_seed(0)
network = UNet()
optimizer = torch.optim.Adam(network.parameters(), 0.01)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(pixels).permute(0, 3, 1, 2), wanted).backward()
    optimizer.step()
torch.onnx.export(network.eval(), (pixels,), path, input_names=['picture'], output_names=['classes'], dynamo=False)
"""

# Reads and writes models as the trees of objects that LiteRT's schema has.
SCHEMA = """
import sys
import flatbuffers
from ai_edge_litert import schema_py_generated as schema
def read(path):
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(open(path, 'rb').read()))
def write(model, path):
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b'TFL3')
    with open(path, 'wb') as file:
        file.write(builder.Output())
"""

# Two segments of a pipeline in one graph: what the first hands on is what the second takes, by name. Both keep programs and parameters of
# their own, which the Edge TPU then loads in turn; `reef learn join` refuses to make such a model, because that is slow.
JOINED = SCHEMA + """
first, second, path = sys.argv[1:]
one, other = read(first), read(second)
graph, more = one.subgraphs[0], other.subgraphs[0]
names = {tensor.name: index for index, tensor in enumerate(graph.tensors)}
place = {}
for index, tensor in enumerate(more.tensors):
    if index in more.inputs:
        place[index] = names[tensor.name]
        continue
    place[index] = len(graph.tensors)
    tensor.buffer += len(one.buffers)
    graph.tensors.append(tensor)
for operator in more.operators:
    operator.opcodeIndex += len(one.operatorCodes)
    operator.inputs = [place.get(index, -1) for index in operator.inputs]
    operator.outputs = [place[index] for index in operator.outputs]
    graph.operators.append(operator)
one.buffers += other.buffers
one.operatorCodes += other.operatorCodes
graph.outputs = [place[index] for index in more.outputs]
one.metadata, one.signatureDefs = [], []
write(one, path)
"""

# Detectors of TensorFlow 2 have a signature, which says which output is which, and their outputs in another order.
IN_THE_FORM_OF_TF2 = SCHEMA + """
model = read(sys.argv[1])
graph = model.subgraphs[0]
boxes, classes, scores, count = graph.outputs
graph.outputs = [scores, boxes, count, classes]
def entry(name, tensor):
    made = schema.TensorMapT()
    made.name, made.tensorIndex = name, tensor
    return made
signature = schema.SignatureDefT()
signature.signatureKey, signature.subgraphIndex = 'serving_default', 0
signature.inputs = [entry('input', graph.inputs[0])]
signature.outputs = [entry(f'output_{i}', tensor) for i, tensor in enumerate((count, scores, classes, boxes))]
model.signatureDefs = [signature]
write(model, sys.argv[2])
"""


class StandIns:
    def __init__(self, reef, python, folder):
        self.reef, self.python, self.folder = reef, python, folder

    def file(self, name):
        return self.folder / f"{name}.tflite"

    def make(self, name, *command):
        """By a command of Reef. OUT stands for the result, FILE/... for a file that must be there."""
        sources = [self.file(word[5:]) for word in command if word.startswith("FILE/")]
        if self.file(name).exists() or not all(source.exists() for source in sources):
            return
        words = [str(self.file(name)) if word == "OUT" else str(self.file(word[5:])) if word.startswith("FILE/") else word
                 for word in command]
        subprocess.run([self.reef, *words], check=True, stdout=subprocess.DEVNULL)

    def copy(self, name, source):
        if self.file(source).exists() and not self.file(name).exists():
            shutil.copy(self.file(source), self.file(name))

    def has(self, modules):
        return subprocess.run([self.python, "-c", f"import {modules}"], capture_output=True).returncode == 0

    def run_python(self, program, *arguments):
        subprocess.run([self.python, "-c", program, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=600,
                       env=dict(os.environ, OMP_NUM_THREADS="1"))

    def classifiers(self):
        parts = "tools/mobilenet_quant_v1_224"
        self.make("mobilenet_v1_1.0_224_quant", "learn", "join", "FILE/mobilenet_v1_1.0_224_quant_embedding_extractor",
                  f"FILE/{parts}_head_layers", "-o", "OUT")
        self.make("mobilenet_v1_1.0_224_quant_edgetpu", "learn", "join", f"FILE/{parts}_feature_layers_edgetpu",
                  f"FILE/{parts}_head_layers", "-o", "OUT")
        self.copy("efficientnet-edgetpu-L_quant_edgetpu", "mobilenet_v1_1.0_224_quant_edgetpu")
        self.make("mobilenet_v1_1.0_224_ptq_float_io_legacy", "convert", "FILE/mobilenet_v1_1.0_224_quant", "--io", "float32", "-o", "OUT")
        self.make("mobilenet_v1_1.0_224_ptq_float_io_legacy_edgetpu", "compile", "FILE/mobilenet_v1_1.0_224_ptq_float_io_legacy", "-o",
                  "OUT")

    def detectors(self):
        if not self.has("flatbuffers, ai_edge_litert"):
            return
        joined = []
        for version in (1, 2):
            name = f"ssd_mobilenet_v{version}_coco_quant_postprocess"
            joined.append(self.file(f"{name}_edgetpu"))
            segments = [self.file(f"pipeline/{name}_segment_{i}_of_2_edgetpu") for i in range(2)]
            if not joined[-1].exists() and all(segment.exists() for segment in segments):
                self.run_python(JOINED, *segments, joined[-1])
        for name in ("tf2_ssd_mobilenet_v1_fpn_640x640_coco17_ptq_edgetpu", "tf2_ssd_mobilenet_v2_coco17_ptq_edgetpu"):
            if joined[1].exists() and not self.file(name).exists():
                self.run_python(IN_THE_FORM_OF_TF2, joined[1], self.file(name))

    def segmenters(self):
        for size, mark in ((128, ""), (256, "_256")):
            name = f"keras_post_training_unet_mv2_{size}_quant"
            picture = self.folder / f"dog_segmentation{mark}.bmp"
            mask = self.folder / f"dog_segmentation_mask{mark}.bmp"
            if self.file(name).exists() or not mask.exists() or not self.has("torch, onnx, PIL"):
                continue
            made = self.folder / "made" / str(size)
            made.mkdir(parents=True)
            shutil.copy(picture, made)
            self.run_python(LEARN_BY_HEART, picture, mask, made / "unet.onnx")
            subprocess.run([self.reef, "quantize", made / "unet.onnx", "--data", made, "--preprocess", "unit", "--io", "uint8", "-o",
                            self.file(name)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.make(f"{name}_edgetpu", "compile", f"FILE/{name}", "-o", "OUT")

    def segments(self):
        """Two segments of a pipeline whose answers nobody looks at."""
        self.make("inception_v3_299_quant_edgetpu", "compile", "FILE/mobilenet_v1_0.5_160_quant", "-o", "OUT")
        small = self.file("mobilenet_v1_0.5_160_quant")
        names = [self.file(f"pipeline/inception_v3_299_quant_segment_{i}_of_2_edgetpu") for i in range(2)]
        if names[0].exists() or not small.exists():
            return
        made = self.folder / "made"
        made.mkdir(exist_ok=True)
        subprocess.run([self.reef, "compile", small, "--num_segments", "2", "-o", made, "--quiet"], check=True)
        for i, name in enumerate(names):
            name.parent.mkdir(exist_ok=True)
            name.symlink_to(made / f"{small.stem}_segment_{i}_of_2_edgetpu.tflite")


def complete(reef, python, data, folder):
    """The files of the checkout `data` in a new folder, with stand-ins for what is missing there. Returns the names of these."""
    for file in pathlib.Path(data).rglob("*"):
        if file.is_file():
            place = folder / file.relative_to(data)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file)
    stand_ins = StandIns(reef, python, folder)
    for part in (stand_ins.classifiers, stand_ins.detectors, stand_ins.segmenters, stand_ins.segments):
        part()
    return sorted(file.name for file in folder.rglob("*.tflite")
                  if "made" not in file.parts and not (data / file.relative_to(folder)).exists())
