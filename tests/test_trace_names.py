"""Which trace a word means."""

from __future__ import annotations

from pathlib import Path

import pytest

import traces
from traces import Request, Trace, TraceError, expand, find, load, names, open_trace, write

HEADER = {"model": "m"}
A = Request.of("a", [1, 2], [3], "stop")


def test_every_shipped_trace_is_read_by_its_name() -> None:
    for name in names():
        trace = load(name)

        assert trace.source == name
        assert len(trace.requests) >= 1


def test_a_shipped_trace_is_found_by_any_path_of_its_stem_where_no_file_is(tmp_path: Path) -> None:
    for name in names():
        for where in (name, f"{name}.jsonl", f"{name}.jsonl.gz", str(tmp_path / f"{name}.jsonl"), f"no/such/{name}"):
            assert find(where).name.split(".")[0] == name
            assert open_trace(where).source == name


def test_a_file_goes_before_the_shipped_trace_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    for name in [*names(), "mine"]:
        write(Path(name), HEADER, [A])
        assert find(name) == Path(name)
        assert load(name) == Trace(name, {"format": "breakeven-trace/1", "model": "m"}, (A,))


def test_names_are_the_files_of_the_package() -> None:
    folder = Path(traces.__file__).parent / "shipped"

    assert names() == sorted({file.name.split(".")[0] for file in folder.glob("*.jsonl*")})


def test_a_misspelt_name_is_refused_with_the_names_there_are() -> None:
    shipped = ", ".join(names()) or "none"

    for name in names():
        with pytest.raises(TraceError) as caught:
            find(f"{name}x.jsonl")
        assert str(caught.value) == f"no trace named '{name}x.jsonl' (shipped: {shipped}); did you mean {name!r}?"
    with pytest.raises(TraceError) as caught:
        find("qqqq")
    assert str(caught.value) == f"no trace named 'qqqq' (shipped: {shipped})"


def test_a_folder_stands_for_its_traces(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "c.txt", "c.jsonl.bak", "._b.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "folder.jsonl").mkdir()

    assert expand(str(tmp_path)) == [str(tmp_path / "a.jsonl.gz"), str(tmp_path / "b.jsonl")]


def test_anything_but_a_folder_stands_for_itself() -> None:
    for where in ("story", "no/such/file.jsonl", "", "x" * 300):
        assert expand(where) == [where]


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        expand(tmp_path)

    assert str(caught.value) == f"{tmp_path}: holds no traces (*.jsonl, *.jsonl.gz)"
