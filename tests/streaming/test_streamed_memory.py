import pytest

from rekka.core.errors import BadOption
from rekka.streaming.blocks import free_memory, read_memory, say_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GB", 10**9), ("1.5 gb", 15 * 10**8), ("600M", 6 * 10**8), ("1GiB", 2**30), (2 * 10**9, 2 * 10**9)],
)
def test_sizes_are_read(text, size):
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["much", "", "-1GB", "1 gigabyte", True, "1e9"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(BadOption, match="a size such as 1GB"):
        read_memory(text)


def test_too_little_is_refused():
    with pytest.raises(BadOption, match="at least 500 MB"):
        read_memory("10MB")


def test_without_a_limit_half_of_what_is_free_is_taken(monkeypatch):
    monkeypatch.setattr("rekka.streaming.blocks.free_memory", lambda: 10**10)
    assert read_memory(None) == 5 * 10**9
    assert free_memory() > 10**8


def test_sizes_are_said():
    assert [say_bytes(size) for size in (12_300, 550_000_000, 1_234_000_000)] == ["12.3 kB", "550 MB", "1.23 GB"]


def test_the_least_is_enough():
    assert read_memory("500MB") == 500_000_000
    with pytest.raises(BadOption, match="at least 500 MB"):
        read_memory("499.9MB")
