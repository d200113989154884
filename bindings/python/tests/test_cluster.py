# SPDX-License-Identifier: Apache-2.0
"""reef.cluster: equal figures for any number of workers, workers and drivers that die, bad input; with Ray where it is there."""

import io
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import numpy as np

import reef
from reef import cluster
from reef.cluster import _work

MODELS = pathlib.Path(__file__).resolve().parents[3] / "models"
MODEL, PICTURES = MODELS / "reef_creatures_int8.tflite", MODELS / "images"
LABELS = MODELS / "reef_creatures_labels.txt"


def program():
    beside = pathlib.Path(os.environ.get("REEF_LIBRARY", "")).parent / "reef"
    found = _work.find_program(str(beside))
    if found is None:
        raise unittest.SkipTest("the program reef is not beside the library and not on PATH")
    return found


def ray_or_skip():
    try:
        import ray  # noqa: F401
    except ImportError as error:
        raise unittest.SkipTest("Ray is not installed (pip install ray)") from error


def run(*words):
    done = subprocess.run([program(), *map(str, words), "--json"], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def entry(number, content):
    """A field of a protobuf message that is a string or a message."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def example(picture, label):
    """tf.train.Example with an encoded picture and a class number."""
    def feature(name, kind, values):
        return entry(1, entry(1, name.encode()) + entry(2, entry(kind, values)))
    return entry(1, feature("image/encoded", 1, entry(1, picture)) + feature("image/class/label", 3, entry(1, varint(label))))


def checksum(data):
    """CRC-32C, masked as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + checksum(length) + data + checksum(data)


WORDS = ["--data", str(PICTURES), "--labels", str(LABELS), "--metric", "top1"]


class Folder(unittest.TestCase):
    def setUp(self):
        self.program = program()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.environ.pop, "TMPDIR", None)

    def figure(self, report):
        return report["metric"], report["value"], report["standard_error"], report["samples"], report.get("details")


class Shards(Folder):
    def described(self, *words):
        return run("eval", MODEL, *words, "--metric", "top1", "--describe-samples")[1]

    def test_pieces_of_pictures_together_are_all_of_them(self):
        described = self.described("--data", PICTURES, "--labels", LABELS)
        shards = list(cluster.split(str(PICTURES), described, count=5))
        names = [[name for name in shard.blob.names if name != "truth.txt"] for shard in shards]
        self.assertEqual(sorted(sum(names, [])), sorted("pictures/" + path.name for path in PICTURES.iterdir()))
        for k, own in enumerate(names):
            by_hand = self.described("--data", PICTURES, "--labels", LABELS, "--shard", f"{k}/5")["names"]
            self.assertEqual(sorted(own), sorted("pictures/" + name for name in by_hand))

    def test_pieces_of_arrays_follow_the_order_that_was_asked_for(self):
        images = np.random.default_rng(0).integers(0, 256, (11, 96, 96, 3), np.uint8)
        file = self.folder / "set.npz"
        np.savez(file, images=images, labels=np.arange(11) % 8, calib=images[:3])
        described = self.described("--data", file, "--shuffle", "3", "--limit", "7")
        order = [int(name) for name in described["names"]]
        self.assertEqual(len(set(order)), 7)
        for shard in cluster.split(str(file), described, count=3):
            place = shard.blob.unpack(self.folder / "blobs")
            with np.load(place / shard.data) as piece:
                self.assertEqual(sorted(piece.files), ["images", "labels"])
                np.testing.assert_array_equal(piece["images"], images[order[shard.number::3]])

    def test_blobs_keep_contents_and_are_unpacked_once(self):
        blob = cluster.Blob.of({"a/b.txt": b"one", "c": b""})
        place = blob.unpack(self.folder)
        self.assertEqual((place / "a/b.txt").read_bytes(), b"one")
        self.assertEqual((place / "c").read_bytes(), b"")
        (place / "a/b.txt").write_bytes(b"kept")
        self.assertEqual((blob.unpack(self.folder) / "a/b.txt").read_bytes(), b"kept")
        self.assertNotEqual(cluster.Blob.of({"a": b"one"}).key, cluster.Blob.of({"b": b"one"}).key)


class Evaluate(Folder):
    def test_any_number_of_workers_gives_the_figure_of_one_process(self):
        code, whole = run("eval", MODEL, *WORDS)
        self.assertEqual(code, 0)
        for workers in (1, 2, 4):
            with cluster.connect(f"local:{workers}") as scheduler:
                report = cluster.evaluate(scheduler, [str(MODEL), *WORDS], self.program, quiet=True)
            self.assertEqual(self.figure(report), self.figure(whole), workers)

    def test_the_command_takes_a_cluster(self):
        environment = dict(os.environ, REEF_PYTHON=sys.executable)
        done = subprocess.run([self.program, "eval", MODEL, *WORDS, "--cluster", "local:2", "--json"], capture_output=True, text=True,
                              env=environment, check=True)
        self.assertEqual(self.figure(json.loads(done.stdout)), self.figure(run("eval", MODEL, *WORDS)[1]))

    def test_arrays_with_boxes_and_a_shuffle(self):
        generator = np.random.default_rng(1)
        detector = MODELS / "reef_detector_int8.tflite"
        images = generator.integers(0, 256, (9, 160, 160, 3), np.uint8)
        boxes = np.concatenate([generator.integers(10, 70, (9, 2, 4)), generator.integers(0, 8, (9, 2, 1))], axis=2).astype(np.int16)
        file = self.folder / "boxes.npz"
        np.savez(file, images=images, boxes=boxes)
        words = ["--data", str(file), "--metric", "map50", "--shuffle", "5", "--limit", "8"]
        code, whole = run("eval", detector, *words)
        self.assertEqual(code, 0, whole)
        with cluster.connect("local:2") as scheduler:
            report = cluster.evaluate(scheduler, [str(detector), *words], self.program, quiet=True)
        self.assertEqual(self.figure(report), self.figure(whole))

    def compared(self, *words, model=MODEL):
        """Two workers and one process agree; the number of shards is more than one."""
        code, whole = run("eval", model, *words)
        self.assertEqual(code, 0, whole)
        with cluster.connect("local:2") as scheduler:
            report = cluster.evaluate(scheduler, [str(model), *map(str, words)], self.program, quiet=True)
        self.assertGreater(report["shards"], 1)
        self.assertEqual(self.figure(report), self.figure(whole))
        return whole

    def classes(self, *kinds):
        """The creatures in folders. Their names alone decide which number a class has."""
        folder = self.folder / "classes"
        for path in sorted(PICTURES.iterdir()):
            kind = path.stem.split("_")[0]
            if not kinds or kind in kinds:
                (folder / kind).mkdir(parents=True, exist_ok=True)
                (folder / kind / path.name).write_bytes(path.read_bytes())
        return folder

    def test_the_number_of_a_folder_is_that_of_the_whole_set(self):
        """A shard has pictures of some classes only."""
        whole = self.compared("--data", self.classes(), "--metric", "top1")
        self.assertGreater(whole["value"], 0.9)  # the labels of the model are in alphabetical order, as folders are

    def test_archives_and_records_are_cut_by_samples(self):
        samples = sorted(self.classes().rglob("*.*"))
        shards = [[], []]
        for number, path in enumerate(samples):
            shards[number % 2].append(path)
        for k, (name, mode) in enumerate((("a.tar", "w"), ("b.tar.gz", "w:gz"))):
            with tarfile.open(self.folder / name, mode) as by_folder, tarfile.open(self.folder / f"cls_{name}", mode) as by_number:
                for number, path in enumerate(shards[k]):
                    by_folder.add(path, f"{path.parent.name}/{path.name}")
                    by_number.add(path, f"{number:04}{path.suffix}")  # both archives have these names
                    label = str(sorted({other.parent.name for other in samples}).index(path.parent.name)).encode()
                    member = tarfile.TarInfo(f"{number:04}.cls")
                    member.size = len(label)
                    by_number.addfile(member, io.BytesIO(label))
        for stem in ("", "cls_"):
            data = f"{self.folder}/{stem}a.tar,{self.folder}/{stem}b.tar.gz"
            whole = self.compared("--data", data, "--metric", "top1", "--shuffle", "3")
            self.assertGreater(whole["value"], 0.9)
        done = subprocess.run([self.program, "eval", str(MODEL), "--data", self.folder / "a.tar", self.folder / "b.tar.gz", "--metric", "top1",
                               "--cluster", "local:2", "--json"], capture_output=True, text=True, env=dict(os.environ, REEF_PYTHON=sys.executable))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["samples"], len(samples))
        records = self.folder / "set.tfrecord"
        records.write_bytes(b"".join(record(example(path.read_bytes(), sorted({p.parent.name for p in samples}).index(path.parent.name)))
                                     for path in samples))
        whole = self.compared("--data", records, "--metric", "top1", "--limit", "11")
        self.assertGreater(whole["value"], 0.9)

    def test_a_run_that_was_killed_goes_on(self):
        keep = self.folder / "parts"
        with cluster.connect("local:1") as scheduler:
            cluster.evaluate(scheduler, [str(MODEL), *WORDS], self.program, str(keep), quiet=True)
        parts = sorted(keep.glob("*.json"))
        self.assertGreater(len(parts), 3)
        for part in parts[::2]:  # what a kill leaves: some parts are there, one is half written
            part.unlink()
        parts[0].with_suffix(".part").write_text("{")
        with cluster.connect("local:2") as scheduler:
            report = cluster.evaluate(scheduler, [str(MODEL), *WORDS], self.program, str(keep), quiet=True)
        self.assertEqual(report["shards_found"], len(parts) // 2)
        self.assertEqual(self.figure(report), self.figure(run("eval", MODEL, *WORDS)[1]))

    def test_parts_by_hand_and_what_does_not_belong_together(self):
        parts = [self.folder / f"{k}.json" for k in (0, 1, 2)]
        for k, part in enumerate(parts):
            code, said = run("eval", MODEL, *WORDS, "--shard", f"{k}/3", "--partial", part)
            self.assertEqual(code, 0, said)
        merged = run("eval", MODEL, *WORDS, "--merge", *parts)[1]
        self.assertEqual(self.figure(merged), self.figure(run("eval", MODEL, *WORDS)[1]))
        for words, sentence in ((["--merge", *parts[:2]], "are in none of the parts"),
                                (["--merge", *parts, parts[0]], "is in another part, too"),
                                (["--label-offset", "1", "--merge", *parts], "another model, another metric")):
            code, said = run("eval", MODEL, *WORDS, *words)
            self.assertEqual(code, 1, words)
            self.assertIn(sentence, said["error"]["message"])


class Dying(Folder):
    """A program that stands for reef: it fails as it is told, then becomes reef."""

    def fake(self, script):
        path = self.folder / "fake_reef"
        path.write_text(f"#!/bin/sh\n{script}\nexec {self.program} \"$@\"\n")
        path.chmod(0o755)
        return str(path)

    def test_a_worker_that_is_killed_is_replaced_and_nothing_counts_twice(self):
        marker = self.folder / "killed"
        # The first shard's first try ends by SIGKILL in the middle of its work.
        fake = self.fake(f'case "$*" in *--partial*) if mkdir {marker} 2>/dev/null; then kill -9 $$; fi;; esac')
        with cluster.connect("local:2") as scheduler:
            report = cluster.evaluate(scheduler, [str(MODEL), *WORDS], fake, quiet=True)
        self.assertTrue(marker.exists())
        self.assertEqual(self.figure(report), self.figure(run("eval", MODEL, *WORDS)[1]))

    def test_a_job_that_always_dies_ends_the_run_with_a_sentence(self):
        fake = self.fake('case "$*" in *--partial*) kill -9 $$;; esac')
        with cluster.connect("local:2") as scheduler, self.assertRaisesRegex(cluster.ClusterError, "died 4 times"):
            cluster.evaluate(scheduler, [str(MODEL), *WORDS], fake, quiet=True)

    def test_a_worker_without_reef(self):
        job = cluster.Job(("--version",), (), {}, str(self.folder / "nowhere"))
        before, path = os.environ.pop("REEF_PROGRAM", None), os.environ["PATH"]
        os.environ["PATH"] = str(self.folder)
        try:
            with cluster.connect("local:1") as scheduler, self.assertRaisesRegex(cluster.ClusterError, "has no program `reef`"):
                list(scheduler.run([job]))
        finally:
            os.environ["PATH"] = path
            if before is not None:
                os.environ["REEF_PROGRAM"] = before


class BadInput(Folder):
    def fails(self, words, sentence):
        environment = dict(os.environ, REEF_PYTHON=sys.executable)
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_sentences(self):
        empty = self.folder / "empty"
        empty.mkdir()
        np.savez(self.folder / "none.npz", images=np.zeros((0, 96, 96, 3), np.uint8), labels=np.zeros(0))
        (self.folder / "damaged.npz").write_bytes(b"PK\3\4 nothing")
        local = ["--cluster", "local:2"]
        for words, sentence in (
                (["eval", MODEL, "--data", empty, "--metric", "top1", *local], "holds no pictures"),
                (["eval", MODEL, "--data", self.folder / "none.npz", "--metric", "top1", *local], "none.npz"),
                (["eval", MODEL, "--data", self.folder / "damaged.npz", "--metric", "top1", *local], "damaged.npz"),
                (["eval", self.folder / "no.tflite", "--data", PICTURES, "--metric", "top1", *local], "no.tflite"),
                (["eval", MODEL, *WORDS, "--cluster", "local:0"], "1 to 1024"),
                (["eval", MODEL, *WORDS, "--cluster", "somewhere"], "give local, local:N, ray"),
                (["tune", MODELS / "reef_creatures_float.tflite", "--data", empty, "-o", self.folder / "t", *local], "holds no pictures")):
            with self.subTest(sentence):
                self.fails(words, sentence)

    def test_messages_of_workers_name_the_users_files(self):
        with tarfile.open(self.folder / "few.tar", "w") as archive:
            for path in sorted(PICTURES.iterdir())[:6]:
                archive.add(path, f"{path.stem.split('_')[0]}/{path.name}")
        data = f"{self.folder}/few.tar"
        self.fails(["tune", MODELS / "reef_creatures_float.tflite", "--data", data, "--labels", LABELS, "--preprocess", "unit", "-o",
                    self.folder / "t", "--cluster", "local:2"], f"'{data}' has")

    def test_without_ray(self):
        try:
            import ray  # noqa: F401
            self.skipTest("Ray is installed")
        except ImportError:
            self.fails(["eval", MODEL, *WORDS, "--cluster", "ray"], "pip install 'reef-tpu[ray]'")


class Sweep(Folder):
    def test_commands_run_side_by_side_and_their_files_come_back(self):
        commands = [["compile", str(MODEL), "-O", level, "-o", "{out}", "--json"] for level in ("0", "1", "2")] + [["check", "no.tflite"]]
        with cluster.connect("local:2") as scheduler:
            outcomes = {outcome.index: outcome for outcome in cluster.sweep(scheduler, commands, self.program)}
        self.assertEqual([outcomes[i].code for i in range(4)], [0, 0, 0, 1])
        for i, level in enumerate((0, 1, 2)):
            file = reef.compile(MODEL, self.folder, level=level).files[0]
            self.assertEqual(outcomes[i].files["reef_creatures_int8_edgetpu.tflite"], pathlib.Path(file).read_bytes())


class Tune(Folder):
    WORDS = ["--preprocess", "unit", "--points", "3", "--judge-samples", "20"]

    def data(self):
        """Pictures in folders of classes, enough to fit, choose and report."""
        generator, data = np.random.default_rng(0), self.folder / "data"
        for path in sorted(PICTURES.iterdir()):
            pixels = reef.load_image(path, (96, 96)).astype(np.float64)
            for i in range(3):
                place = data / path.stem.split("_")[0]
                place.mkdir(parents=True, exist_ok=True)
                reef.save_image(place / f"{path.stem}_{i}.png", (pixels + generator.normal(0, 6, pixels.shape)).clip(0, 255).astype(np.uint8))
        return data

    def tuned(self, name, *more):
        words = [self.program, "tune", MODELS / "reef_creatures_float.tflite", "--data", self.folder / "data", "--labels", LABELS, *self.WORDS,
                 "-o", self.folder / name, *more]
        environment = dict(os.environ, REEF_PYTHON=sys.executable)
        return subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                start_new_session=True)

    def result(self, name):
        report = json.loads((self.folder / name / "tune.json").read_text())
        for point in report["points"]:
            point["bytes"] = [pathlib.Path(file).read_bytes() for file in point.pop("files")]
            point.pop("int8")
        report.pop("output")
        return report

    def test_workers_and_kills_do_not_change_the_points(self):
        self.data()
        out, err = (process := self.tuned("alone")).communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("on the front", out)
        killed = self.tuned("killed", "--cluster", "local:2")
        records = self.folder / "killed" / "records"
        while killed.poll() is None and len(list(records.glob("*.json"))) < 6:
            time.sleep(0.05)
        was_running = killed.poll() is None
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        self.assertTrue(was_running)
        out, err = (process := self.tuned("killed", "--cluster", "local:2")).communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(self.result("alone"), self.result("killed"))
        out, err = (process := self.tuned("alone", "--json")).communicate()
        self.assertEqual(json.loads(out)["work"]["done"], 0, "a repeated run does nothing again")


class OnRay(Folder):
    @classmethod
    def setUpClass(cls):
        ray_or_skip()

    def test_any_number_of_workers_gives_the_figure_of_one_process(self):
        whole = run("eval", MODEL, *WORDS)[1]
        for workers in (1, 2, 4):
            with cluster.connect(f"ray:{workers}") as scheduler:
                self.assertEqual(scheduler.workers, workers)
                report = cluster.evaluate(scheduler, [str(MODEL), *WORDS], self.program, quiet=True)
            self.assertEqual(self.figure(report), self.figure(whole), workers)

    def test_a_worker_process_that_is_killed_is_replaced(self):
        """SIGKILL to the Python worker of Ray itself, found as the parent of the program that it runs."""
        marker = self.folder / "killed"
        fake = self.folder / "fake_reef"
        fake.write_text(f'#!/bin/sh\ncase "$*" in *--partial*) if mkdir {marker} 2>/dev/null; then kill -9 $PPID; sleep 5; fi;; esac\n'
                        f'exec {self.program} "$@"\n')
        fake.chmod(0o755)
        with cluster.connect("ray:2") as scheduler:
            report = cluster.evaluate(scheduler, [str(MODEL), *WORDS], str(fake), quiet=True)
        self.assertTrue(marker.exists())
        self.assertEqual(self.figure(report), self.figure(run("eval", MODEL, *WORDS)[1]))

    def test_a_cluster_that_is_not_there(self):
        with self.assertRaisesRegex(cluster.ClusterError, "there is no Ray cluster at 127.0.0.1:1"):
            cluster.connect("127.0.0.1:1")


if __name__ == "__main__":
    unittest.main()
