# SPDX-License-Identifier: Apache-2.0
"""`reef eval --cluster`: every shard of the samples is one task, which gives what its samples got; the figure is computed from
all of them, in the samples' order, as `reef eval` computes it."""

from __future__ import annotations

import os
import pathlib
import tempfile
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ._program import Progress, found_program, run_json, value_of, without
from ._scheduler import ClusterError, Scheduler
from ._shards import Shard, split
from ._work import Blob, Job, why, write_whole

# Options that are about the samples as a whole: workers get what was settled.
_ABOUT_SAMPLES = {"--data": 1, "--limit": 1, "--shuffle": 1, "--preprocess": 1, "--truth": 1, "--labels": 1, "--boxes": 1, "--shard": 1}
_FOR_DRIVER = {"--json": 0, "--threads": 1}


def _model_of(words: Sequence[str]) -> str:
    for number, word in enumerate(words):
        if os.path.isfile(word) and not (number > 0 and words[number - 1] in _ABOUT_SAMPLES):
            return word
    raise ClusterError("the command names no model file")


def _job(shard: Shard, blob: Any, model: Any, words: Sequence[str], described: dict, name: str, program: str) -> Job:
    data = "{1}/" + shard.data
    sent = [*without(without(words, _ABOUT_SAMPLES), _FOR_DRIVER)]
    sent[sent.index(name)] = "{0}/" + pathlib.Path(name).name
    more = ["--data", data, "--threads", "1", "--partial", "{out}/partial.json"]
    if shard.names is not None:
        more += ["--sample-names", "{1}/" + shard.names]
    if described["preprocess"]:
        more += ["--preprocess", described["preprocess"]]
    if described["boxes"]:
        more += ["--boxes", described["boxes"]]
    if shard.truth is not None:
        more += ["--truth", "{1}/" + shard.truth]
    elif described["truth"]:
        more += ["--truth", described["truth"]]
    if described["labels"]:
        more += ["--labels", "{2}/" + pathlib.Path(described["labels"]).name]
    places = {data: value_of(words, "--data"), "{0}/" + pathlib.Path(name).name: name}
    return Job(("eval", *sent, *more, "--json"), (model, blob), {}, program, places)


def _part_file(folder: pathlib.Path, settled: str, shard: Shard) -> pathlib.Path:
    return folder / f"{Blob.of({'key': f'{settled} {shard.blob.key} {shard.number}'.encode()}).key}.json"


class _Parts:
    """The parts of one evaluation: files of a folder, which shards have left or will leave there."""

    def __init__(self, folder: pathlib.Path, model: str, words: Sequence[str], described: dict, program: str):
        self.folder, self.model, self.words, self.described, self.program = folder, model, words, described, program
        self.blob = Blob.of({pathlib.Path(model).name: pathlib.Path(model).read_bytes()})
        self.files: List[pathlib.Path] = []
        self.found = 0
        told = {key: value for key, value in described.items() if key not in ("names", "classes", "shards")}
        self._settled = self.blob.key + Blob.of({"words": "\0".join(without(words, _FOR_DRIVER)).encode(),
                                                 "described": repr(sorted(told.items())).encode()}).key

    def jobs(self, scheduler: Scheduler, places: List[pathlib.Path]) -> Iterator[Job]:
        """A job for each shard whose part is not there; `places` gets the files of their parts."""
        words, described = self.words, self.described
        data, truth, labels = value_of(words, "--data"), value_of(words, "--truth"), described["labels"]
        model: Any = None
        for shard in split(data, described, truth if truth and os.path.isfile(truth) else None):
            file = _part_file(self.folder, self._settled, shard)
            self.files.append(file)
            if file.exists():
                self.found += 1
                continue
            if model is None:
                model = scheduler.put(self.blob)
                more = (scheduler.put(Blob.of({pathlib.Path(labels).name: pathlib.Path(labels).read_bytes()})),) if labels else ()
            places.append(file)
            job = _job(shard, scheduler.put(shard.blob), model, words, described, self.model, self.program)
            yield replace(job, blobs=job.blobs + more)


def evaluate(scheduler: Scheduler, words: Sequence[str], program: Optional[str] = None, keep: Optional[str] = None,
             quiet: bool = False) -> Dict[str, Any]:
    """What `reef eval WORDS --json` says.

    keep: a folder for the results of shards; a run that was killed goes on with those that are there.
    """
    program = found_program(program)
    described = run_json(program, ["eval", *without(words, {"--json": 0}), "--describe-samples"])
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        parts = _Parts(folder, _model_of(words), words, described, program)
        seconds: List[float] = []
        places: List[pathlib.Path] = []
        progress = Progress("shards", quiet)
        for done, outcome in enumerate(scheduler.run(parts.jobs(scheduler, places)), 1):
            if outcome.code != 0:
                raise ClusterError(why(outcome))
            seconds.append(outcome.cpu_seconds)
            write_whole(places[outcome.index], outcome.files["partial.json"])
            progress.show(parts.found + done, len(parts.files))
        progress.end()
        listed = folder / "merge.txt"
        listed.write_text("".join(f"{file.name}\n" for file in parts.files))
        report = run_json(program, ["eval", *without(words, {"--json": 0}), "--merge", str(listed)])
    report["workers"], report["shards"], report["shards_found"] = scheduler.workers, len(parts.files), parts.found
    report["cpu_seconds_of_shards"] = seconds
    return report
