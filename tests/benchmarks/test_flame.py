from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from benchmarks.flame import ROW, WIDTH, main, read, without_small

STACKS = [
    "thread (1);run (threads.py:9);work (streams/stage.py:5);_call (0 7-9>:3);predict (models/n.py:1) 60",
    "thread (2): y;<module> (run.py);work (streams/stage.py:5);<send> (aiokafka/p.py:8) 39",
    "thread (2): y;<module> (run.py);work (streams/stage.py:5);rare (other.py:2) 1",
    "thread (2): y;<module> (run.py);run (asyncio/run.py:3);EpollSelector.select (selectors.py:4) 80",
]


def test_stacks_of_all_threads_are_one_tree_from_the_first_function_of_ours() -> None:
    root = read(STACKS)
    assert (root.samples, list(root.calls)) == (100, ["work (streams/stage.py)"])
    (work,) = root.calls.values()
    assert {call.name: call.samples for call in work.calls.values()} == {
        "predict (models/n.py)": 60, "<send> (aiokafka/p.py)": 39, "rare (other.py)": 1,
    }  # fmt: skip
    assert len(without_small(work, 2).calls) == 2


def test_the_picture_is_an_svg_in_which_width_is_time(tmp_path: Path) -> None:
    (tmp_path / "stacks").write_text("\n".join(STACKS) + "\n")
    main(tmp_path / "stacks", tmp_path / "picture.svg", 0.02)
    svg = ElementTree.parse(tmp_path / "picture.svg").getroot()
    found = {}
    for group in svg:
        title, rect = group[0].text or "", group[1].attrib
        found[title] = (round(float(rect["width"])), int(rect["y"]))
    assert found == {
        "all threads 100.0%": (WIDTH, 2 * ROW),
        "work (streams/stage.py) 100.0%": (WIDTH, ROW),
        "predict (models/n.py) 60.0%": (720, 0),
        "<send> (aiokafka/p.py) 39.0%": (468, 0),
    }
