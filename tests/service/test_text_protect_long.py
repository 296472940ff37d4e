"""What must not change in a long text: found in linear time, and not to the end if nobody waits."""

import pytest

from service.text.protect import FOUND_KINDS, Protection, protect

GLOSSARY = {"engine": "moteur", "a": "b"}
HTML = Protection(FOUND_KINDS, html=True, glossary=GLOSSARY)
LENGTH = 100_000
PIECES = ["<b>", '<a "', "<!---->", "<pre>", "<svg a>", "<?", "<script/>", "</script ", "</b>",
          "<code>", "{", "{x} ", "a.", "a-", "a1+", "1,", "a@", "a@b.c ", " ", "www.", "://",
          "&amp;", "engine ", "a ", "<"]  # fmt: skip


class Stopped(Exception):
    pass


class Counter:
    """A check that counts itself, and may raise the n-th time."""

    def __init__(self, last: int | None = None) -> None:
        self.count, self._last = 0, last

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._last:
            raise Stopped


@pytest.mark.parametrize(
    "html",
    [
        "<code>" * 9000 + "</code>" * 9000,
        "<b>" * 9000 + "x" + "</b>" * 9000,
        "a.org/" + ")" * LENGTH,
        "<script>" * LENGTH,
        "<style>" + "</style " * LENGTH,
        "<pre>" + "</pre <pre>" * LENGTH,
        "<!--" * LENGTH,
        "<!-- --" * LENGTH,
    ],
    ids=[
        "code in code",
        "one in another",
        "brackets",
        "scripts",
        "ends without an end",
        "elements whose ends have none",
        "comments",
        "comments that nearly end",
    ],
)
def test_nesting_and_what_has_no_end_take_linear_time(html: str) -> None:
    assert len(protect(html, HTML).text) < len(html)


@pytest.mark.parametrize("piece", PIECES)
def test_any_text_takes_linear_time_and_asks_all_the_way_whether_to_go_on(piece: str) -> None:
    counts = []
    for length in (LENGTH // 2, LENGTH):
        counts.append(check := Counter())
        protect(piece * (length // len(piece)), HTML, check=check)
    assert counts[0].count >= LENGTH // 2 // 2048
    assert 1.9 < counts[1].count / counts[0].count < 2.1


@pytest.mark.parametrize("piece", ["<b>a</b> ", "{x} ", "&amp;", "a@b.c ", "engine "])
def test_a_check_ends_the_work_at_any_time(piece: str) -> None:
    text = piece * 70
    total = Counter()
    protect(text, HTML, check=total)
    for last in range(1, total.count + 1):
        with pytest.raises(Stopped):
            protect(text, HTML, check=Counter(last))


def test_spans_of_the_caller_that_share_tags_take_linear_time() -> None:
    text = "<b>a</b> " * 10_000
    spans = [(index, len(text) - index) for index in range(10_000)]
    (part,) = protect(text, Protection(FOUND_KINDS), spans).parts
    assert (part.start, part.end) == (0, len(text))
