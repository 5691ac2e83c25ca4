"""Keys and counter-based random numbers: pinned values, sensitivity, uniformity."""

import numpy as np
from scipy import stats

from pipeline_lib.base.hashing import salt, sequence_keys, splitmix64, string_key, string_keys, uniform

MASK64 = (1 << 64) - 1


def plain_splitmix64(x: int) -> int:
    z = (x + 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def test_splitmix64_is_the_published_generator() -> None:
    # The first outputs of the reference implementation with seed 1234567.
    state, found = 1234567, []
    for _ in range(3):
        found.append(int(splitmix64(np.array([state], np.uint64))[0]))
        state = (state + 0x9E3779B97F4A7C15) & MASK64
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    numbers = [0, 1, 2**63, MASK64, 0xDEADBEEF]
    given = np.array(numbers, np.uint64)
    assert splitmix64(given).tolist() == [plain_splitmix64(x) for x in numbers] and given.tolist() == numbers


def test_keys_are_stable_over_versions() -> None:
    # Stored shards are addressed by these: another value is a new format.
    assert int(string_key("film")) == 6569835820675580736
    assert int(salt(1, 2, "rule")) == int(string_key("1\x1f2\x1frule"))
    assert len({int(salt(*parts)) for parts in [(1, 23), (12, 3), (123,), (1, 2, 3), (3, 2, 1)]}) == 5


def test_string_keys_are_those_of_each_string() -> None:
    texts = ["a", "", "ü", "\ud800", "a"]
    assert string_keys(texts).tolist() == [int(string_key(t)) for t in texts]
    assert len(set(string_keys(texts).tolist())) == 4


def test_sequence_keys_depend_on_items_and_order_alone() -> None:
    items = string_keys(["a", "b", "b", "a", "a", "b", "a", "a"])
    keys = sequence_keys(items, np.array([0, 2, 4, 6, 7, 8])).tolist()
    ab, ba, again, a, a_again = keys
    assert ab == again and a == a_again
    assert len({ab, ba, a}) == 3
    alone = sequence_keys(string_keys(["a", "b"]), np.array([0, 2]))
    assert int(alone[0]) == ab
    words = string_keys([f"w{i}" for i in range(20)])
    pairs = np.array([(x, y) for x in words for y in words]).ravel()
    assert len(set(sequence_keys(pairs, np.arange(0, 801, 2)).tolist())) == 400


def test_the_key_of_an_empty_sequence_is_its_own() -> None:
    # Wherever it is, next to whatever: first, in between, twice in a row, last, and alone.
    offsets = np.array([0, 0, 2, 2, 2, 3, 3])
    keys = sequence_keys(string_keys(["a", "b", "a"]), offsets).tolist()
    empty = plain_splitmix64(0)
    assert [key == empty for key in keys] == [True, False, True, True, False, True]
    for words, key in ((["a", "b"], keys[1]), (["a"], keys[4]), ([], empty)):
        alone = sequence_keys(string_keys(words), np.array([0, len(words)]))
        assert alone.tolist() == [key]


def test_uniform_is_uniform_and_independent_of_its_neighbours() -> None:
    keys = np.arange(20_000, dtype=np.uint64)
    first, second = uniform(keys, salt(1, "a")), uniform(keys, salt(1, "b"))
    assert first.min() >= 0 and first.max() < 1
    assert stats.kstest(first, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.03
    assert uniform(keys[::-1], salt(1, "a")).tolist() == first[::-1].tolist()
