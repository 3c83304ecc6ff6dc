"""What feeds in the wild do with ids, links, encodings, languages and markup. Half of the feeds were read
rightly before.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.sources.protocols.feed_child import read_feed
from streams.sources.protocols.markup import text_of
from streams.sources.protocols.rss import Rss
from streams.sources.source import Position, Step

ADDRESS = "https://feeds.example.net/board/rss"
SOURCE = Rss(url=f"{ADDRESS}?key=planted-key")


def rss(*items: str, head: str = "", declared: str = '<?xml version="1.0"?>') -> str:
    media = 'xmlns:media="http://search.yahoo.com/mrss/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    inside = "".join(f"<item>{item}</item>" for item in items)
    return f'{declared}<rss version="2.0" {media}><channel><title>Board</title>{head}{inside}</channel></rss>'


def atom(*entries: str, attributes: str = "") -> str:
    inside = "".join(f"<entry>{entry}</entry>" for entry in entries)
    return f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}><title>t</title>{inside}</feed>'


def read(feed: str | bytes, charset: str | None = None) -> dict[str, Any]:
    body = feed if isinstance(feed, bytes) else feed.encode()
    answer: dict[str, Any] = orjson.loads(read_feed(body, charset, ADDRESS))
    return answer


def step(feed: str, position: Position | None = None) -> Step:
    return SOURCE._step(read(feed), {}, position or {})


def texts(found: Step) -> list[str]:
    return [getattr(item, "text", "") for item in found.items]


def item(guid: str = "", link: str = "", title: str = "rash", rest: str = "") -> str:
    ids = "".join(f"<{n}>{value}</{n}>" for n, value in (("guid", guid), ("link", link)) if value)
    return f"{ids}<title>{title}</title>{rest}"


HEAD = "<link>https://example.org/board</link>"


@pytest.mark.parametrize(
    ("feed", "link"),
    [
        (rss(item(link="/t/17"), head=HEAD), "https://example.org/t/17"),
        (rss(item(link="https://a.example/1"), head=HEAD), "https://a.example/1"),
        (rss(item(link="t/17")), "https://feeds.example.net/board/t/17"),
        (rss(item(guid="https://a.example/1")), "https://a.example/1"),
        (rss(item(link="?t=17"), head=HEAD), "https://example.org/board?t=17"),
        (rss(item(guid="17", link="https://a.example/1?b=2&amp;c=3")), "https://a.example/1?b=2&c=3"),
        (rss(item(link="//a.example/1"), head=HEAD), "https://a.example/1"),
        (rss(item(guid="17")), None),
        (rss(item(link="#17")), f"{ADDRESS}#17"),
        (rss(item()), None),
        (atom("<id>1</id><title>a</title><link href='t/17'/>"), "https://feeds.example.net/board/t/17"),
        (atom("<id>1</id><title>a</title><link href='https://a.example/1'/>"), "https://a.example/1"),
        (
            atom("<id>1</id><title>a</title><link href='17'/>", attributes='xml:base="https://b.example/t/"'),
            "https://b.example/t/17",
        ),
        (rss(item(link="javascript:alert(1)")), None),
        (rss(item(link="http://[::1")), None),
    ],
)  # fmt: skip
def test_a_link_is_an_address_wherever_the_feed_says_what_it_is_relative_to(
    feed: str, link: str | None
) -> None:
    (entry,) = read(feed)["entries"]
    assert entry["permalink"] == link


ONE, TWO = item(title="Zoloft rash"), item(title="Humira hives")


@pytest.mark.parametrize(
    ("first", "second", "sent", "sent_again"),
    [
        # without an id of its own
        ([ONE, TWO], [ONE, TWO], 2, 0),
        ([ONE], [TWO, ONE], 1, 1),
        ([item("N/A", title="a"), item("N/A", title="b")], [item("N/A", title="a")], 2, 0),
        ([item("-", title="a"), item("null", title="b"), item("undefined", title="c")], [], 3, 0),
        ([item(link="/", title="a"), item(link="/", title="b")], [item(link="/", title="a")], 2, 0),
        (
            [item("/board", "/1", title="a"), item("/board", "/2", title="b")],
            [item("/board", "/1", title="a"), item("/board", "/3", title="c")], 2, 1,
        ),
        # with a link that is another one at each request
        ([item(link="/a?v=1"), item(link="/b?v=1", title="b")], [item(link="/a?v=2")], 2, 0),
        ([item(link="/a?v=1"), item(link="/b?v=1")], [item(link="/a?v=2"), item(link="/b?v=2")], 2, 1),
        ([item(link="/a;s=1", title="a")], [item(link="/a;s=2", title="b")], 1, 1),
        # with ids, which count
        ([item("1"), item("2")], [item("3"), item("2")], 2, 1),
        ([item("0", title="a")], [item("0", title="a")], 1, 0),
        ([item("1", title="a")], [item("1", title="b")], 1, 1),
        ([item("1", title="new"), item("1", title="old")], [item("1", title="new")], 1, 0),
        ([item("1", "/x", title="new"), item("1", "/x", title="old")], [item("1", "/x", title="new")], 1, 0),
        ([item(link="/1"), item(link="/2")], [item(link="/3"), item(link="/2"), item(link="/1")], 2, 1),
        ([item(link="/1", title="a")], [item(link="/1", title="b")], 1, 1),
        ([item("unknown cause", title="a")], [item("unknown cause", title="b")], 1, 1),
        ([item("1", "/a?v=1")], [item("1", "/a?v=2")], 1, 0),
    ],
)  # fmt: skip
def test_each_entry_is_sent_once_and_again_only_when_it_has_changed(
    first: list[str], second: list[str], sent: int, sent_again: int
) -> None:
    before = step(rss(*first))
    after = step(rss(*second), before.position)
    assert (len(before.items), len(after.items)) == (sent, sent_again)
    assert len({item.id for item in before.items if hasattr(item, "id")}) == sent
    assert not step(rss(*second), after.position).items


def test_two_entries_with_one_text_and_volatile_links_are_two_at_every_request() -> None:
    known = step(rss(item(link="/a?v=1"), item(link="/b?v=1"))).position
    for version in (2, 3, 4):
        found = step(rss(item(link=f"/a?v={version}"), item(link=f"/b?v={version}")), known)
        known = found.position
        assert len(found.items) <= 1


def test_an_entry_that_loses_its_text_takes_back_what_was_sent() -> None:
    before = step(rss(item("1", title="Zoloft rash"), item("2", title="")))
    assert (texts(before), dict(before.left_out)) == (["Zoloft rash"], {"empty": 1})
    after = step(rss(item("1", title=""), item("2", title="")), before.position)
    assert [(getattr(i, "text", None), getattr(i, "edited", None)) for i in after.items] == [("", True)]


@pytest.mark.parametrize(
    ("text", "encoding", "charset", "declared"),
    [
        ("nudności i zawroty głowy", "iso-8859-2", "iso-8859-2", ""),
        ("nudności i zawroty głowy", "iso-8859-2", "iso-8859-2", '<?xml version="1.0"?>'),
        ("тошнота и сыпь", "koi8-r", "koi8-r", ""),
        ("тошнота и сыпь", "windows-1251", "windows-1251", ""),
        ("吐き気と発疹", "shift_jis", "Shift_JIS", ""),
        ("吐き気と発疹", "iso-2022-jp", "iso-2022-jp", ""),
        ("恶心和皮疹", "gb18030", "gb2312", ""),
        ("nausée", "utf-16-le", "utf-16le", ""),
        # what the document says, or plainly is, comes before the header
        ("nausée", "utf-8", "iso-8859-1", ""),
        ("nausée", "utf-8", "iso-8859-1", '<?xml version="1.0" encoding="utf-8"?>'),
        ("nausée", "iso-8859-1", "utf-8", '<?xml version="1.0" encoding="iso-8859-1"?>'),
        ("nausée", "utf-8-sig", "iso-8859-1", ""),
        ("nausée", "utf-16", "utf-8", ""),
        ("nausée", "windows-1252", None, ""),
        ("nausée", "utf-8", "no-such-charset", ""),
        ("nausée", "windows-1252", "no-such-charset", ""),
    ],
)  # fmt: skip
def test_a_feed_is_read_in_the_charset_of_its_header_where_it_states_none(
    text: str, encoding: str, charset: str | None, declared: str
) -> None:
    feed = rss(item("1", title=text), declared=declared).encode(encoding)
    assert [entry["text"] for entry in read(feed, charset)["entries"]] == [text]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("weight <gain> on Zyprexa", "weight <gain> on Zyprexa"),
        ("weight <b>gain</b> on Zyprexa", "weight gain on Zyprexa"),
        ("INR <2 on warfarin and WBC<low since Clozaril, then platelets>high",) * 2,
        ("INR &lt;2 on <i>warfarin</i>", "INR <2 on warfarin"),
        ("Re: <Zoloft> <gain></gain>",) * 2,
        ("rash<br>hives<br/>itch", "rash\nhives\nitch"),
        ("<p>rash<p>hives", "rash\nhives"),
        ("HR<60 & BP>180",) * 2,
        ("mail <ann@example.org> or <https://example.org/a>",) * 2,
        ('see <a href="https://example.org/?a=1&b=2">this</a>', "see this"),
        ("<o:p>rash</o:p><my-box>hives</my-box>", "rashhives"),
        ("<FONT color=red>rash</FONT> <center>x</center>", "rash x"),
        ("I <3 Zoloft </3",) * 2,
        ("<script>var a</script>rash<style>b</style><!-- c --><?php d ?>", "rash"),
        ("ALT <ULN, then <then more",) * 2,
        ("<svg><circle/></svg>dose", "<circle/>dose"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("rash <redacted> hives",) * 2,
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_no_element_of_html_is_text(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        (atom('<id>1</id><title type="text">weight &lt;gain&gt;</title>'), "weight <gain>"),
        (atom('<id>1</id><title type="html">weight &lt;b&gt;gain&lt;/b&gt;</title>'), "weight gain"),
        (rss(item("1", title="WBC&lt;low, platelets&gt;high")), "WBC<low, platelets>high"),
        (rss(item("1", title="<![CDATA[<b>rash</b>]]>")), "rash"),
        (
            rss(item("1", rest="<description>x &lt;gain&gt; &lt;b&gt;y&lt;/b&gt;</description>")),
            "rash\nx <gain> y",
        ),
        (rss(item("1", rest="<description>&lt;p&gt;x&lt;/p&gt;</description>")), "rash\nx"),
        (rss(item("1", rest="<media:description>on Zoloft</media:description>")), "rash\non Zoloft"),
        (
            rss(item("1", rest="<description>on Zoloft for a week</description>"
                "<media:description type='plain'>Photo: A. B.</media:description>")),
            "rash\non Zoloft for a week",
        ),
        (
            rss(item("1", rest="<media:group><media:title>x</media:title><media:description type='html'>"
                "&lt;p&gt;on Zoloft&lt;/p&gt;</media:description></media:group>")),
            "rash\non Zoloft",
        ),
        (rss(item("1", rest="<media:thumbnail url='https://a.example/x.png'/>")), "rash"),
    ],
)  # fmt: skip
def test_the_text_of_an_entry_is_its_longest_without_its_markup(feed: str, text: str) -> None:
    assert [entry["text"] for entry in read(feed)["entries"]] == [text]


@pytest.mark.parametrize(
    ("feed", "language"),
    [
        (
            atom("<id>1</id><title>a</title>", attributes='xml:lang="en"').replace(
                "<entry>", '<entry xml:lang="de">'
            ),
            "de",
        ),
        (atom("<id>1</id><title>a</title>", attributes='xml:lang="en"'), "en"),
        (rss(item("1", rest="<dc:language>pl</dc:language>"), head="<language>en</language>"), "pl"),
        (rss(item("1"), head="<language>en-us</language>"), "en"),
        (atom('<id>1</id><title>a</title><content xml:lang="fr">b</content>'), "fr"),
        (rss(item("1")), None),
        (rss(item("1"), head="<language>de</language>").replace("<rss", '<rss xml:lang="en"'), "de"),
        (rss(item("1", rest="<dc:language>und</dc:language>"), head="<language>en</language>"), None),
    ],
)  # fmt: skip
def test_an_entry_has_the_language_that_it_states_or_that_of_the_feed(
    feed: str, language: str | None
) -> None:
    assert [getattr(post, "language", "") for post in step(feed).items] == [language]


@pytest.mark.parametrize(
    ("dates", "at"),
    [
        ("<pubDate>Sun, 29 Mar 2026 02:30:00 CEST</pubDate>", "Sun, 29 Mar 2026 02:30:00 CEST"),
        ("<dc:date>2026-03-29</dc:date>", "2026-03-29"),
        ("<pubDate>yesterday</pubDate><dc:date>2026-03-29</dc:date>", "2026-03-29"),
        ("<pubDate>yesterday</pubDate>", "yesterday"),
        ("<pubDate>2004-július-13T9:15-05:00</pubDate>", "2004-július-13T9:15-05:00"),
        ("", None),
    ],
)
def test_the_time_of_an_entry_is_handed_on_as_it_is_written(dates: str, at: object) -> None:
    assert [entry["at"] for entry in read(rss(item("1", rest=dates)))["entries"]] == [at]
