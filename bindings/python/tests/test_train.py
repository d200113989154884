# SPDX-License-Identifier: Apache-2.0
"""reef.train: models from folders of generated pictures, runs that are killed, several processes, bad data."""

import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import reef

try:
    import onnx  # noqa: F401
    import torch
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") from error

from reef.train import TrainRequest, train_classifier, train_detector
from reef.train._backbones import BACKBONES
from reef.train._boxes import read_boxes
from reef.train._detector import default_boxes, default_targets, map50
from reef.train._pictures import load, varied
from reef.train._session import HEADS

torch.set_num_threads(1)
SMALL = dict(size=32, width=0.25, batch=16, qat_epochs=1)


def disc(size, x, y, radius):
    rows, columns = np.mgrid[0:size, 0:size]
    return (columns - x) ** 2 + (rows - y) ** 2 < radius**2


def picture(generator, shape, size=32):
    """A bright thing on a dark, noisy ground."""
    x, y, radius = *generator.uniform(size * 0.35, size * 0.65, 2), generator.uniform(size * 0.2, size * 0.3)
    rows, columns = np.mgrid[0:size, 0:size]
    inside = {"disc": disc(size, x, y, radius), "stripes": (rows // 4) % 2 == 0,
              "bars": (columns // 4) % 2 == 0}[shape]
    ground = generator.integers(0, 80, 3)
    pixels = np.where(inside[..., None], generator.integers(150, 256, 3), ground) + generator.normal(0, 6, (size, size, 3))
    return pixels.clip(0, 255).astype(np.uint8)


def make_classes(folder, count=24, shapes=("disc", "stripes", "bars")):
    generator = np.random.default_rng(0)
    for shape in shapes:
        (folder / shape).mkdir(parents=True)
        for i in range(count):
            reef.save_image(folder / shape / f"{i:03}.png", picture(generator, shape))
    return folder


def make_boxes(folder, form, count=8, size=64):
    """The same pictures and boxes in one of three forms."""
    generator, coco = np.random.default_rng(0), {"images": [], "annotations": [], "categories": [{"id": 4, "name": "disc"}]}
    (folder / "images").mkdir(parents=True)
    for i in range(count):
        radius = generator.uniform(8, 16)
        x, y = generator.uniform(radius, size - radius, 2)
        inside = disc(size, x, y, radius)
        reef.save_image(folder / "images" / f"{i:03}.png", np.where(inside[..., None], 220, 40).repeat(3, -1).astype(np.uint8))
        edges = (x - radius, y - radius, x + radius, y + radius)
        if form == "yolo":
            (folder / "labels").mkdir(exist_ok=True)
            (folder / "labels" / f"{i:03}.txt").write_text(f"0 {x / size} {y / size} {2 * radius / size} {2 * radius / size}\n")
        elif form == "voc":
            (folder / "Annotations").mkdir(exist_ok=True)
            box = "".join(f"<{name}>{value}</{name}>" for name, value in zip(("xmin", "ymin", "xmax", "ymax"), edges))
            (folder / "Annotations" / f"{i:03}.xml").write_text(
                f"<annotation><size><width>{size}</width><height>{size}</height></size>"
                f"<object><name>disc</name><bndbox>{box}</bndbox></object></annotation>")
        coco["images"].append({"id": i, "file_name": f"{i:03}.png", "width": size, "height": size})
        coco["annotations"].append({"image_id": i, "category_id": 4, "bbox": [edges[0], edges[1], 2 * radius, 2 * radius]})
    if form == "yolo":
        (folder / "classes.txt").write_text("disc\n")
    if form == "coco":
        (folder / "boxes.json").write_text(json.dumps(coco))
    return folder


# Each of two processes takes a half of a batch, then all of it, which is what a single process would do.
ONE_STEP = """
import torch, torch.distributed as dist, torch.nn.functional as F
from reef.train._backbones import Classifier
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = Classifier("mobilenet", 3, 32, 0.25).train()
x, y = torch.randn(16, 3, 32, 32), torch.randint(0, 3, (16,))
def gradient(own):
    shared = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    model.zero_grad(set_to_none=True)
    F.cross_entropy(shared(x[own]), y[own]).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
whole, halves = gradient(slice(0, 16)), gradient(slice(dist.get_rank(), 16, 2))
if dist.get_rank() == 0:
    print(float((whole - halves).norm() / whole.norm()))
dist.destroy_process_group()
"""


# Put into every process: the second one kills itself once, behind its second checkpoint.
DIES_ONCE = """
import os, signal, threading, time
folder = os.environ.get("DIES_ONCE")
def watch():
    while not os.path.exists(folder + "/two/checkpoint.pt"):
        time.sleep(0.02)
    try:
        os.close(os.open(folder + "/died", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
if folder and os.environ.get("RANK") == "1":
    threading.Thread(target=watch, daemon=True).start()
"""

# The first worker kills itself after the second epoch, once.
KILLED_WORKER = """
import os, pathlib, signal, sys
from reef.train import TrainRequest, train_with_ray
folder = pathlib.Path(sys.argv[1])
def tell(text):
    if "epoch 2 of 4" in text and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
request = TrainRequest(str(folder / "data"), str(folder / "mine"), size=32, width=0.25, batch=15, epochs=4, qat_epochs=1, precision="double")
train_with_ray("classifier", request, 2, tell=tell)
"""

HAS_RAY = importlib.util.find_spec("ray") is not None


class FolderTest(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)


class ClassifierTest(FolderTest):
    def test_easy_pictures_are_learned_and_run_on_the_virtual_chip(self):
        data = make_classes(self.folder / "data")
        report = train_classifier(TrainRequest(str(data), str(self.folder / "mine"), epochs=8, **SMALL), tell=lambda text: None)
        self.assertGreaterEqual(report["score"], 0.8)  # three classes that no stranger would confuse
        self.assertEqual(report["device_codes_differing"], 0)
        self.assertEqual(report["device_pictures"], report["test_pictures"])
        self.assertEqual(report["device_score"], report["score"])
        self.assertEqual(sorted(os.listdir(self.folder / "mine")), [
            "finished_float.pt", "labels.txt", "model_int8.tflite", "model_int8_edgetpu.log", "model_int8_edgetpu.tflite",
            "report.json", "training.svg"])
        self.assertEqual((self.folder / "mine" / "labels.txt").read_text(), "bars\ndisc\nstripes\n")


class DetectorTest(FolderTest):
    def test_three_forms_say_the_same(self):
        forms = {form: read_boxes(make_boxes(self.folder / form, form)) for form in ("coco", "yolo", "voc")}
        self.assertEqual([forms[form].form for form in ("coco", "yolo", "voc")], ["COCO", "YOLO", "Pascal VOC"])
        for form in ("yolo", "voc"):
            self.assertEqual(forms[form].class_names, ["disc"])
            np.testing.assert_allclose(np.array(forms[form].boxes), np.array(forms["coco"].boxes), atol=1e-6)

    def test_precision_counts_hits(self):
        truths = [[(0, 0.3, 0.3, 0.2, 0.2), (0, 0.7, 0.7, 0.2, 0.2)]]
        hit, other = [0.3, 0.3, 0.2, 0.2, 0.9, 1.0], [0.1, 0.8, 0.1, 0.1, 0.8, 1.0]
        second = [0.7, 0.7, 0.2, 0.2, 0.7, 1.0]
        self.assertAlmostEqual(map50(torch.tensor([[hit, second]]), truths, 1), 1.0)
        self.assertAlmostEqual(map50(torch.tensor([[hit, other, second]]), truths, 1), 0.5 + 0.5 * 2 / 3)
        self.assertAlmostEqual(map50(torch.tensor([[other]]), truths, 1), 0.0)

    def test_detectors_run_on_the_virtual_chip_as_trained(self):
        data = make_boxes(self.folder / "data", "yolo", count=16)
        for head in HEADS:
            for backbone in BACKBONES:
                with self.subTest(head=head, backbone=backbone):
                    request = TrainRequest(str(data), str(self.folder / f"{head}_{backbone}"), epochs=5, head=head, backbone=backbone,
                                           **{**SMALL, "size": 64, "batch": 6})
                    report = train_detector(request, tell=lambda text: None)
                    self.assertLess(min(report["losses"][1:]), report["losses"][0])
                    self.assertEqual(report["device_codes_differing"], 0)

    def test_ssd_learns_where_things_are(self):
        data = make_boxes(self.folder / "data", "coco", count=60)
        request = TrainRequest(str(data), str(self.folder / "mine"), epochs=40, head="ssd", patience=0, rate=5e-3, mirror=True,
                               **{**SMALL, "size": 64, "batch": 8})
        self.assertGreaterEqual(train_detector(request, tell=lambda text: None)["score"], 0.6)  # one bright disc in each picture

    def test_boxes_move_with_their_pictures(self):
        """A bright disc on a dark ground: its box is where it is bright, also where it was mirrored and moved."""
        size, generator = 64, torch.Generator().manual_seed(0)
        centres = [(20, 30, 10), (44, 22, 12), (32, 40, 8), (40, 40, 14)]
        pixels = torch.stack([torch.from_numpy(np.where(disc(size, *where)[..., None], 250, 5).repeat(3, -1).astype(np.uint8)).permute(2, 0, 1)
                              for where in centres])
        boxes = [[(3, (x + 0.5) / size, (y + 0.5) / size, 2 * r / size, 2 * r / size)] for x, y, r in centres]
        moved = 0
        for _ in range(6):
            varied_pixels, varied_boxes = varied(pixels, range(4), generator, True, boxes)
            for picture_, before, after in zip(varied_pixels, boxes, varied_boxes):
                rows, columns = np.nonzero(picture_[0].numpy() > 127)
                kind, x, y, w, h = after[0]
                self.assertEqual(kind, 3)
                for found, low, high in ((x, columns.min(), columns.max() + 1), (y, rows.min(), rows.max() + 1)):
                    self.assertAlmostEqual(found, (low + high) / 2 / size, delta=1.5 / size)
                moved += abs(x - before[0][1]) > 2 / size
        self.assertGreater(moved, 6)
        cut, _ = varied(pixels[2:], range(2, 4), torch.Generator().manual_seed(9), True)
        whole, _ = varied(pixels, range(4), torch.Generator().manual_seed(9), True)
        torch.testing.assert_close(cut, whole[2:])  # a process's share of a batch is varied as in the whole batch

    def test_default_boxes_answer_for_boxes(self):
        default = default_boxes(4, 0.25)
        self.assertEqual(tuple(default.shape), (4 * 4 * 4, 4))
        exact = (1, *default[21].tolist())
        self.assertIn((21, exact), default_targets([exact], default))
        tiny = (0, 0.5, 0.5, 0.01, 0.01)  # overlaps no default box by half
        self.assertEqual([box for _, box in default_targets([tiny], default)], [tiny])
        self.assertEqual(default_targets([], default), [])


class CheckpointTest(FolderTest):
    def test_shipped_backbones_and_finished_runs_are_begun_with(self):
        data, said = make_classes(self.folder / "data", 6), []
        for kind in BACKBONES:
            shipped = TrainRequest(str(data), str(self.folder / kind), epochs=1, backbone=kind, checkpoint="shipped",
                                   **{**SMALL, "width": 0.5})
            train_classifier(shipped, tell=said.append)
            self.assertTrue(any("begins with" in text for text in said))
        again = TrainRequest(str(data), str(self.folder / "again"), epochs=1, checkpoint=str(self.folder / "mobilenet" / "finished_float.pt"),
                             **{**SMALL, "width": 0.5})
        train_classifier(again, tell=lambda text: None)

    def test_what_cannot_be_begun_with(self):
        data = make_classes(self.folder / "data", 3)
        (self.folder / "no.pt").write_bytes(b"nothing")
        for checkpoint, width, sentence in (("shipped", 0.3, "is shipped; there are"), (str(self.folder / "gone.pt"), 0.5, "there is no file"),
                                            (str(self.folder / "no.pt"), 0.5, "is no checkpoint")):
            request = TrainRequest(str(data), str(self.folder / "mine"), epochs=1, checkpoint=checkpoint, **{**SMALL, "width": width})
            with self.assertRaisesRegex(reef.Error, sentence):
                train_classifier(request, tell=lambda text: None)
            self.assertFalse((self.folder / "mine").exists())


class ResumeTest(FolderTest):
    def command(self, output, *words):
        return [sys.executable, "-m", "reef.train", "classifier", "--data", str(self.folder / "data"), "-o", str(output), "--size", "32",
                "--width", "0.25", "--batch", "16", "--epochs", "4", "--qat-epochs", "1", *words]

    def losses(self, output):
        report = json.loads((output / "report.json").read_text())
        return report["losses"] + report["qat_losses"]

    def run_alone(self, output, *words):
        subprocess.run(self.command(output, *words), check=True, capture_output=True, timeout=900)

    def test_an_interrupted_run_ends_as_if_nothing_had_happened(self):
        make_classes(self.folder / "data", 12)
        options = dict(epochs=3, **SMALL)

        def interrupt(text):
            if "epoch 2 of 3" in text:
                raise KeyboardInterrupt

        whole = train_classifier(TrainRequest(str(self.folder / "data"), str(self.folder / "whole"), **options), tell=lambda text: None)
        request = TrainRequest(str(self.folder / "data"), str(self.folder / "cut"), **options)
        with self.assertRaises(KeyboardInterrupt):
            train_classifier(request, tell=interrupt)
        self.assertEqual(os.listdir(self.folder / "cut"), ["checkpoint.pt"])
        request.resume = True
        resumed = train_classifier(request, tell=lambda text: None)
        for name in ("losses", "scores", "qat_losses", "qat_scores"):
            np.testing.assert_allclose(resumed[name], whole[name], rtol=1e-6, err_msg=name)
        self.assertEqual((self.folder / "cut" / "model_int8.tflite").read_bytes(), (self.folder / "whole" / "model_int8.tflite").read_bytes())

    def test_a_killed_run_ends_as_if_nothing_had_happened(self):
        make_classes(self.folder / "data", 16)
        self.run_alone(self.folder / "whole")
        killed = self.folder / "killed"
        process = subprocess.Popen(self.command(killed), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while process.poll() is None and not (killed / "checkpoint.pt").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse((killed / "report.json").exists())
        refused = subprocess.run(self.command(killed), capture_output=True, text=True, timeout=900)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--resume goes on with it", refused.stderr)
        self.run_alone(killed, "--resume")
        np.testing.assert_allclose(self.losses(killed), self.losses(self.folder / "whole"), rtol=1e-6)

    def test_two_processes_have_the_gradient_of_one(self):
        """Of one step. Curves drift apart afterwards, because Adam makes steps of gradients that are nothing but rounding."""
        script = self.folder / "step.py"
        script.write_text(ONE_STEP)
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)],
                              check=True, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertLess(float(done.stdout.split()[-1]), 1e-4)


class ProcessesTest(FolderTest):
    """The same training by one process, by two of torchrun, by one and two of Ray's workers.

    In float64, so that what is left of a difference would be a defect and no rounding; the phase in the chip's arithmetic has none to
    choose and is compared loosely.
    """
    OPTIONS = ("--size", "32", "--width", "0.25", "--batch", "15", "--epochs", "4", "--qat-epochs", "1", "--precision", "double")

    def setUp(self):
        super().setUp()
        make_classes(self.folder / "data", 20)

    def run_by(self, program, name, *words, **options):
        command = [*program, "classifier", "--data", str(self.folder / "data"), "-o", str(self.folder / name), *self.OPTIONS, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1"}, **options)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return json.loads((self.folder / name / "report.json").read_text())

    def torchrun(self, count, *words):
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count), *words, "-m", "reef.train"]

    def same(self, a, b):
        np.testing.assert_allclose(a["losses"], b["losses"], rtol=1e-9)
        self.assertEqual(a["scores"], b["scores"])
        np.testing.assert_allclose(a["qat_losses"], b["qat_losses"], rtol=0.05)

    def test_two_processes_train_as_one(self):
        """The batch of 15 is shared unequally: 8 and 7 pictures."""
        alone = self.run_by([sys.executable, "-m", "reef.train"], "alone")
        self.same(self.run_by(self.torchrun(2), "two"), alone)

    def test_a_process_that_dies_is_started_again(self):
        """torchrun starts all processes again; they go on from the checkpoint without being told to."""
        alone = self.run_by([sys.executable, "-m", "reef.train"], "alone")
        (self.folder / "sitecustomize.py").write_text(DIES_ONCE)
        os.environ["PYTHONPATH"], before = str(self.folder) + os.pathsep + os.environ.get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")
        self.addCleanup(os.environ.__setitem__, "PYTHONPATH", before)
        os.environ["DIES_ONCE"] = str(self.folder)
        self.addCleanup(os.environ.pop, "DIES_ONCE")
        again = self.run_by(self.torchrun(2, "--max-restarts", "2"), "two")
        self.assertTrue((self.folder / "died").exists())
        self.same(again, alone)

    @unittest.skipUnless(HAS_RAY, "Ray Train is not installed (pip install 'ray[train]')")
    def test_rays_workers_train_as_one_process(self):
        alone = self.run_by([sys.executable, "-m", "reef.train"], "alone")
        for count in (1, 2):
            self.same(self.run_by([sys.executable, "-m", "reef.train"], f"ray{count}", "--ray-workers", str(count)), alone)

    @unittest.skipUnless(HAS_RAY, "Ray Train is not installed (pip install 'ray[train]')")
    def test_a_worker_of_ray_that_is_killed_resumes(self):
        alone = self.run_by([sys.executable, "-m", "reef.train"], "alone")
        script = self.folder / "killed.py"
        script.write_text(KILLED_WORKER)
        done = subprocess.run([sys.executable, str(script), str(self.folder)], capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertTrue((self.folder / "died").exists())
        self.same(json.loads((self.folder / "mine" / "report.json").read_text()), alone)


class PicturesTest(FolderTest):
    def test_sizes_may_differ(self):
        files = []
        for i, size in enumerate(((20, 40, 3), (64, 64, 3), (1, 1, 3), (33, 7, 3))):
            files.append(self.folder / f"{i}.png")
            reef.save_image(files[-1], np.full(size, 40 * i, np.uint8))
        pixels = load(files, 32)
        self.assertEqual(tuple(pixels.shape), (4, 3, 32, 32))
        self.assertEqual([int(one.float().mean()) for one in pixels], [0, 40, 80, 120])


class RefusalsTest(FolderTest):
    """A sentence for each kind of bad data, and nothing written."""

    def refused(self, sentence, train=train_classifier, **options):
        request = TrainRequest(str(self.folder / "data"), str(self.folder / "mine"), **options)
        with self.assertRaisesRegex(reef.Error, sentence):
            train(request, tell=lambda text: None)
        self.assertFalse((self.folder / "mine").exists())

    def test_folders(self):
        self.refused("there is no folder")
        make_classes(self.folder / "data", 3, ("disc",))
        self.refused("has one class, 'disc'")
        (self.folder / "data" / "empty").mkdir()
        self.refused("no pictures .* in .*empty")
        shutil.copy(self.folder / "data" / "disc" / "000.png", self.folder / "data" / "empty" / "1.png")
        self.refused("'empty' has 1")
        shutil.copy(self.folder / "data" / "disc" / "000.png", self.folder / "data" / "empty" / "2.png")
        (self.folder / "data" / "empty" / "3.png").write_bytes(b"no picture")
        self.refused("1 of .* pictures cannot be read: .*3.png")

    def test_pictures_beside_each_other(self):
        make_classes(self.folder / "classes", 2)
        shutil.copytree(self.folder / "classes" / "disc", self.folder / "data")
        self.refused("has no folders: .*2 pictures lie beside each other")

    def test_options(self):
        make_classes(self.folder / "data", 3)
        self.refused("a multiple of 16", size=100)
        self.refused("no backbone 'resnet'", backbone="resnet", epochs=1)
        self.refused("between 0 and 1", held_back=1.5)

    def test_boxes(self):
        folder = make_boxes(self.folder / "data", "yolo")
        for row, sentence in (("0 0.5 0.5 0.1", "a row is"), ("1 0.5 0.5 0.1 0.1", "no class 1"), ("0 1.4 0.5 0.2 0.2", "outside of the picture"),
                              ("0 0.5 0.5 0 0.1", "no area"), ("0 nan 0.5 0.1 0.1", "no number")):
            (folder / "labels" / "000.txt").write_text(row + "\n")
            self.refused(sentence, train_detector)

    def test_damaged_pictures_with_boxes(self):
        folder = make_boxes(self.folder / "data", "yolo")
        good = (folder / "images" / "003.png").read_bytes()
        for content in (b"", good[:len(good) // 2], b"no picture"):
            (folder / "images" / "003.png").write_bytes(content)
            self.refused("1 of .* pictures cannot be read: .*003.png", train_detector)

    def test_box_files(self):
        folder = make_boxes(self.folder / "data", "coco")
        good = (folder / "boxes.json").read_text()
        (folder / "boxes.json").write_text(good[:100])
        self.refused("is no COCO file", train_detector)
        (folder / "boxes.json").write_text(good.replace("003.png", "gone.png"))
        self.refused("not there: gone.png", train_detector)
        shutil.rmtree(folder)
        folder = make_boxes(self.folder / "data", "voc")
        (folder / "Annotations" / "001.xml").write_text("<annotation>")
        self.refused("is no Pascal VOC file", train_detector)
        shutil.rmtree(folder / "Annotations")
        self.refused("has no boxes", train_detector)


if __name__ == "__main__":
    unittest.main()
