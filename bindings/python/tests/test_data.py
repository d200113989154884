# SPDX-License-Identifier: Apache-2.0
"""reef.data against files that others wrote (Python's tarfile, TensorFlow, webdataset), and its promises."""

import io
import itertools
import os
import pathlib
import pickle
import tarfile
import tempfile
import threading
import unittest

import numpy as np

import reef
from reef.data import Dataset, vary


def picture(number: int, side: int = 12) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)


class DataTest(unittest.TestCase):
    COUNT = 7

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="reef_data_test_")
        self.root = pathlib.Path(self.folder.name)
        self.pictures = [picture(i) for i in range(self.COUNT)]
        self.encoded = []
        for i, pixels in enumerate(self.pictures):
            path = self.root / "pngs" / f"{i % 2}" / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            reef.save_image(path, pixels)
            self.encoded.append(path.read_bytes())

    def tearDown(self):
        self.folder.cleanup()

    def write_tar(self, name: str = "set.tar", mode: str = "w", which=None, form=tarfile.DEFAULT_FORMAT) -> str:
        path = str(self.root / name)
        with tarfile.open(path, mode, format=form) as archive:
            for i in range(self.COUNT) if which is None else which:
                for ending, content in (("png", self.encoded[i]), ("cls", str(i * 3).encode())):
                    member = tarfile.TarInfo(f"{i:06}.{ending}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        return path

    def expect_all(self, dataset: Dataset, labels: bool = True):
        batches = list(dataset)
        self.assertEqual(len(batches), self.COUNT)
        for i, batch in enumerate(batches):
            np.testing.assert_array_equal(batch.samples[0], self.pictures[i])
            if labels:
                self.assertEqual(batch.labels.tolist(), [i * 3])

    # ---- Files that others wrote ----

    def test_tars_of_pythons_tarfile(self):
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            self.expect_all(Dataset(self.write_tar(form=form)))
        self.expect_all(Dataset(self.write_tar("set.tar.gz", "w:gz")))
        self.expect_all(Dataset([self.write_tar("a.tar", which=range(3)), self.write_tar("b.tar", which=range(3, 7))]))

    def test_tars_of_webdataset(self):
        try:
            import webdataset
        except ImportError:
            self.skipTest("webdataset is not installed")
        path = str(self.root / "web.tar")
        with webdataset.TarWriter(path) as writer:
            for i in range(self.COUNT):
                writer.write({"__key__": f"{i:04}", "png": self.encoded[i], "cls": i * 3, "json": {"x": i}})
        self.expect_all(Dataset(path))

    def test_records_of_tensorflow(self):
        try:
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
            import tensorflow as tf
        except ImportError:
            self.skipTest("tensorflow is not installed")

        def feature(value):
            if isinstance(value, bytes):
                return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

        for packing in ("", "GZIP"):
            path = str(self.root / f"set{packing}.tfrecord")
            raw = str(self.root / f"raw{packing}.tfrecord")
            with tf.io.TFRecordWriter(path, packing) as writer, tf.io.TFRecordWriter(raw, packing) as other:
                for i in range(self.COUNT):
                    own = {"image/encoded": feature(self.encoded[i]), "image/class/label": feature(i * 3)}
                    writer.write(tf.train.Example(features=tf.train.Features(feature=own)).SerializeToString())
                    own = {"image_raw": feature(self.pictures[i].tobytes()), "label": feature(i * 3), "height": feature(12),
                           "width": feature(12), "depth": feature(3)}
                    other.write(tf.train.Example(features=tf.train.Features(feature=own)).SerializeToString())
            self.expect_all(Dataset(path))
            self.expect_all(Dataset(raw))
        self.expect_all(Dataset.from_tf(tf.data.Dataset.from_tensor_slices(
            (np.stack(self.pictures), np.arange(self.COUNT) * 3))))
        ours = [batch.samples[0].copy() for batch in Dataset(path)]
        theirs = [tf.io.decode_png(self.encoded[i]).numpy() for i in range(self.COUNT)]
        np.testing.assert_array_equal(np.stack(ours), np.stack(theirs))

    def test_folders_and_arrays(self):
        folder = Dataset(self.root / "pngs")
        self.assertEqual(len(folder), self.COUNT)
        self.assertEqual(folder.class_names, {0: "0", 1: "1"})
        for name, batch in zip(folder.names, folder):
            np.testing.assert_array_equal(batch.samples[0], self.pictures[int(pathlib.Path(name).stem)])
        np.savez(self.root / "set.npz", images=np.stack(self.pictures), labels=np.arange(self.COUNT) * 3)
        self.expect_all(Dataset(self.root / "set.npz"))
        self.expect_all(Dataset.from_arrays(np.stack(self.pictures), np.arange(self.COUNT) * 3))
        numbers = np.random.default_rng(0).normal(size=(5, 2, 4)).astype(np.float32)
        got = np.concatenate([batch.samples for batch in Dataset.from_arrays(numbers).batch(2)])
        np.testing.assert_array_equal(got, numbers)

    def test_torch_datasets(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")

        class Own(torch.utils.data.Dataset):
            def __len__(own):
                return self.COUNT

            def __getitem__(own, i):
                return torch.from_numpy(self.pictures[i]).permute(2, 0, 1).float() / 255, i * 3

        self.expect_all(Dataset.from_torch(Own()))

    # ---- Promises ----

    def test_bytes_do_not_depend_on_threads(self):
        base = Dataset(self.write_tar()).shuffle(3).crop(0.5).resize((9, 9)).flip().shift(0.2).colour(0.2, 0.2, 0.2).batch(3).mixup(0.4)
        one = list(base.threads(1).epoch(2))
        for threads in (2, 5):
            for a, b in zip(one, base.threads(threads).epoch(2)):
                np.testing.assert_array_equal(a.samples, b.samples)
                np.testing.assert_array_equal(a.mixed_with, b.mixed_with)
                self.assertEqual(a.share, b.share)
        self.assertFalse(np.array_equal(one[0].samples, next(iter(base.epoch(3))).samples))

    def test_shards_are_the_whole(self):
        base = Dataset(self.write_tar()).shuffle(3)
        parts = [base.shard(i, 3).order(4).tolist() for i in range(3)]
        self.assertEqual(sorted(sum(parts, [])), list(range(self.COUNT)))
        np.testing.assert_array_equal(parts[1], base.order(4)[1::3])
        again = pickle.loads(pickle.dumps(base.shard(1, 3)))
        self.assertEqual(again.order(4).tolist(), parts[1])

    def test_mixup_is_what_it_says(self):
        plain = next(iter(Dataset(self.write_tar()).batch(7)))
        mixed = next(iter(Dataset(self.write_tar()).batch(7).mixup(1.0)))
        self.assertTrue(0.5 <= mixed.share <= 1)
        whole = plain.samples.astype(np.float64)
        expected = np.floor(mixed.share * whole + (1 - mixed.share) * whole[mixed.mixed_with] + 0.5)
        np.testing.assert_array_equal(mixed.samples, expected.astype(np.uint8))
        self.assertTrue((mixed.mixed_with != np.arange(7)).all())

    def test_functions_of_the_program(self):
        threads = set()

        def invert(sample):
            threads.add(threading.get_ident())
            return 255 - sample

        for i, batch in enumerate(Dataset(self.write_tar()).map(invert).threads(2)):
            np.testing.assert_array_equal(batch.samples[0], 255 - self.pictures[i])
        self.assertNotIn(threading.get_ident(), threads)

        def fails(sample):
            raise KeyError("no such thing")

        with self.assertRaisesRegex(KeyError, "no such thing"):
            list(Dataset(self.write_tar()).map(fails))

    def test_counters(self):
        base = Dataset(self.write_tar()).resize((4, 4)).cache().batch(2)
        list(base)
        items = {stage.name: stage.items for stage in base.counters()}
        self.assertEqual(items, {"read": 7, "decode": 7, "resize": 7, "cache": 7, "batch": 4})
        list(base.epoch(1))
        self.assertEqual({stage.name: stage.items for stage in base.counters()}["decode"], 0)

    def test_half_read_epochs_end(self):
        for _ in range(5):
            for batch in Dataset(self.write_tar()).map(lambda sample: sample).threads(3):
                break

    def test_boxes_move_along(self):
        pixels = np.zeros((1, 10, 10, 3), np.uint8)
        pixels[0, 2, 7] = 255
        boxes = [np.array([[0.75, 0.25, 0.1, 0.1, 4]])]
        varied, moved = vary(pixels, [5], boxes=boxes, flip=1)
        self.assertEqual(tuple(np.argwhere(varied[0, :, :, 0])[0]), (2, 2))
        np.testing.assert_allclose(moved[0], [[0.25, 0.25, 0.1, 0.1, 4]])
        np.testing.assert_array_equal(pixels[0, 2, 7], 255)

    def test_commands_take_datasets(self):
        models = pathlib.Path(__file__).resolve().parents[3] / "models"
        small = Dataset(self.write_tar()).resize((96, 96))
        with tempfile.TemporaryDirectory() as out:
            small.to_npz(os.path.join(out, "x.npz"))
            with np.load(os.path.join(out, "x.npz")) as arrays:
                self.assertEqual(arrays["images"].shape, (7, 96, 96, 3))
                self.assertEqual(arrays["labels"].tolist(), [i * 3 for i in range(7)])
            result = reef.learn.imprint(models / "reef_creatures_int8.tflite", Dataset(self.root / "pngs"), os.path.join(out, "a.tflite"),
                                        curve=False)
            self.assertEqual(sorted(result.class_names), ["0", "1"])

    # ---- Bad input ----

    def test_bad_input_is_a_sentence(self):
        def refusal(*arguments, **options):
            with self.assertRaises(reef.Error) as caught:
                list(Dataset(*arguments, **options))
            return str(caught.exception)

        path = self.write_tar()
        content = pathlib.Path(path).read_bytes()
        cut = self.root / "cut.tar"
        cut.write_bytes(content[:700])
        self.assertIn("it is cut off", refusal(cut))
        self.assertIn("absent.tar", refusal("absent.tar"))
        self.assertIn("does not fetch", refusal("https://example.org/set.tar"))
        with self.assertRaisesRegex(reef.Error, "folder, a file or shards"):
            Dataset([])
        evil = self.root / "evil.tar"
        for name, kind, link in (("../x.png", tarfile.REGTYPE, ""), ("a.png", tarfile.SYMTYPE, "/etc/passwd"),
                                 ("a.png", tarfile.CHRTYPE, "")):
            with tarfile.open(evil, "w") as archive:
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, link
                archive.addfile(member, io.BytesIO(b""))
            self.assertRegex(refusal(evil), "leads out|symbolic link|a device")
        empty = self.root / "empty.tfrecord"
        empty.write_bytes(b"")
        self.assertIn("holds no samples", refusal(empty))
        with self.assertRaisesRegex(reef.Error, "no part 3 of 3"):
            list(Dataset(path).shard(3, 3))
        sizes = itertools.count(1)
        with self.assertRaisesRegex(reef.Error, "add resize"):
            Dataset.from_arrays(np.zeros((2, 1))).map(lambda _: np.zeros(next(sizes))).to_npz(self.root / "x.npz")


if __name__ == "__main__":
    unittest.main()
