# SPDX-License-Identifier: Apache-2.0
"""`reef eval --cluster`: every shard of the samples is one task, which gives what its samples got; the figure is computed from
all of them, in the samples' order, as `reef eval` computes it."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Dict, List, Optional, Sequence

from ._program import Progress, found_program, run_json, value_of, without
from ._scheduler import ClusterError, Scheduler
from ._shards import Shard, split
from ._work import Blob, Job, why, write_whole

# Options that are about the samples as a whole: workers get what was settled.
_ABOUT_SAMPLES = {"--data": 1, "--limit": 1, "--shuffle": 1, "--preprocess": 1, "--truth": 1, "--labels": 1, "--boxes": 1}
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
    return Job(("eval", *sent, *more, "--json"), (model, blob), {}, program)


def evaluate(scheduler: Scheduler, words: Sequence[str], program: Optional[str] = None, keep: Optional[str] = None,
             quiet: bool = False) -> Dict[str, Any]:
    """What `reef eval WORDS --json` says.

    keep: a folder for the results of shards; a run that was killed goes on with those that are there.
    """
    program = found_program(program)
    described = run_json(program, ["eval", *without(words, {"--json": 0}), "--describe-samples"])
    name, data, truth = _model_of(words), value_of(words, "--data"), value_of(words, "--truth")
    shards = split(data, described, truth if truth and os.path.isfile(truth) else None)
    model_blob = Blob.of({pathlib.Path(name).name: pathlib.Path(name).read_bytes()})
    labels = Blob.of({pathlib.Path(described["labels"]).name: pathlib.Path(described["labels"]).read_bytes()}) if described["labels"] else None
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        settled = Blob.of({"words": "\0".join(without(words, _FOR_DRIVER)).encode(), "described": repr(sorted(
            (key, value) for key, value in described.items() if key != "names")).encode()}).key
        files = [folder / f"{Blob.of({'key': f'{model_blob.key} {settled} {shard.blob.key} {shard.first}'.encode()}).key}.json"
                 for shard in shards]
        seconds: List[float] = []
        left = [number for number, file in enumerate(files) if not file.exists()]
        if left:
            model = scheduler.put(model_blob)
            more = (scheduler.put(labels),) if labels is not None else ()
            jobs = []
            for number in left:
                job = _job(shards[number], scheduler.put(shards[number].blob), model, words, described, name, program)
                jobs.append(Job(job.words, job.blobs + more, {}, program))
            progress, done = Progress("shards", quiet), len(shards) - len(left)
            progress.show(done, len(shards))
            for outcome in scheduler.run(jobs):
                if outcome.code != 0:
                    raise ClusterError(why(outcome))
                seconds.append(outcome.cpu_seconds)
                write_whole(files[left[outcome.index]], outcome.files["partial.json"])
                done += 1
                progress.show(done, len(shards))
            progress.end()
        listed = folder / "merge.txt"
        listed.write_text("".join(f"{file.name}\n" for file in files))
        report = run_json(program, ["eval", *without(words, {"--json": 0}), "--merge", str(listed)])
    report["workers"], report["shards"], report["shards_found"] = scheduler.workers, len(shards), len(shards) - len(left)
    report["cpu_seconds_of_shards"] = seconds
    return report
