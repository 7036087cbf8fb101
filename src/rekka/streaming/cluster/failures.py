"""What can be wrong with a cluster, in words a person can act on."""

from __future__ import annotations

from rekka.core.errors import InputError, count_of, name_some

KEPT = (
    "What came back before is kept in the run folder, if there is one: go on with the same command, or with rekka "
    "compare --resume RUN, with a cluster or without."
)


class ClusterError(InputError):
    """A cluster that cannot be reached, does not fit, or is lost."""


class ClusterWarning(UserWarning):
    """Workers with other versions of what computes."""


def not_installed() -> ClusterError:
    """The error where Dask is not there."""
    return ClusterError(
        'A cluster needs Dask, which is not installed. Install it with: pip install "rekka[cluster]"'
    )


def no_scheduler(address: str, why: str) -> ClusterError:
    """The error for an address at which nobody answers, or somebody else."""
    return ClusterError(
        f"There is no Dask scheduler at {address}: {why}. Start one with: dask scheduler. It prints its address. "
        "Or use --cluster local for processes on this machine.",
        address=address,
    )


def no_workers(name: str) -> ClusterError:
    """The error for a scheduler without workers."""
    return ClusterError(f"{name} has no workers. Start some with: dask worker ADDRESS. {KEPT}", cluster=name)


def lost(name: str) -> ClusterError:
    """The error for a scheduler that is gone."""
    return ClusterError(
        f"{name} was lost: its scheduler stopped or cannot be reached any more. {KEPT}", cluster=name
    )


def worn_out(name: str, deaths: int, last: str) -> ClusterError:
    """The error for a task that no worker survived."""
    return ClusterError(
        f"{name} gave up: {count_of(deaths, 'worker')} died, one after the other, at the same task, the last at "
        f"{last}. Most often their memory is too small: give them more (dask worker --memory-limit), or fewer "
        f"threads each. {KEPT}",
        cluster=name,
    )


def other_rekka(name: str, here: str, there: dict[str, str | None]) -> ClusterError:
    """The error for workers that would run other code."""
    none = [where for where, version in there.items() if version is None]
    others = [f"{version} ({where})" for where, version in there.items() if version is not None]
    found = [f"rekka is not installed at {name_some(none, 5)}"] if none else []
    found += [f"another rekka is at work there: {name_some(others, 5)}"] if others else []
    return ClusterError(
        f"{name} cannot be used: {'; '.join(found)}. Here it is {here}. Install the same there, and start the "
        "scheduler and its workers again.",
        cluster=name,
    )
