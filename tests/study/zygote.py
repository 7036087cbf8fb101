"""Imports rekka once, then forks a process for each study asked for on stdin, and ends it when told to.

A line of JSON in: the options of a study, and when to end it: ``after`` so many seconds, counted from the moment it
has ``trials`` files of trials; with which ``signal``, and whether its whole ``group`` gets it. A line out: the exit
code, which is minus the signal's number if that ended it. Nothing here may touch polars before the fork: its threads
do not survive it.
"""

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from rekka.evaluation import calibration
from rekka.model.likelihood import compile_kernels
from rekka.study.compare import compare, resume_study


def work(request: dict[str, Any]) -> None:
    out, workers = Path(request["out"]), request.get("workers", 1)
    if limit := request.get("limit"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # a write beyond it fails, as on a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if (out / "study.toml").exists():
        resume_study(out, workers=workers)
    else:
        compare(request["data"], out=out, workers=workers, **request["options"])


def fork(request: dict[str, Any]) -> int:
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        try:
            work(request)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    began = None
    while began is None or time.monotonic() - began < request.get("after", float("inf")):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if began is None and count_trials(Path(request["out"])) >= request.get("trials", 0):
            began = time.monotonic()
        time.sleep(0.005)
    (os.killpg if request.get("group") else os.kill)(child, signal.Signals[request.get("signal", "SIGKILL")])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def count_trials(out: Path) -> int:
    return sum(file.suffix == ".json" for file in (out / "trials").glob("*"))


if __name__ == "__main__":
    compile_kernels()
    calibration.TEST_SETS = int(sys.argv[1])  # as in the process that runs the tests
    print("ready", flush=True)
    for line in sys.stdin:
        print(fork(json.loads(line)), flush=True)
