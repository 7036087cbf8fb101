"""Small functions that the workers of a cluster are given."""

import os
import signal
import time

from rekka.streaming.blocks import Block
from rekka.streaming.cluster.clients import Session


def add(shared: int, more: int) -> int:
    return shared + more


def wait(shared: float, more: int) -> int:
    time.sleep(shared)
    return more


def divide(shared: int, more: int) -> float:
    return shared / more


def die(shared: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sum_block(block: Block) -> tuple[int, float, float]:
    return len(block.dt), float(block.dt.sum()), float(block.x[:, 0].sum())


def refuse(block: Block) -> None:
    raise ValueError(f"refused: {block.dt.sum()}")


def kill_worker(session: Session) -> int:
    """End the process of a worker as the system does when memory runs out."""
    pid: int = next(iter(session.client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)
    return pid


def pids(session: Session) -> set[int]:
    return set(session.client.run(os.getpid).values())
