"""The waiting sentences of one beam width, and the order in which they join.

    late                       l1 l2            a small request goes before the open page ...
    page                       a7 b1 a3 c1 a9   ... which goes by length, shortest or longest first
    groups, in order of turns  d: d1 d2 d3      requests that have a share in a later page
                               a: a10 a11 ...

Those in flight together should be of a length, so that little is padded: some hundred sentences
are taken at once, as a page, and sorted. Whose they are is decided by deficit round robin
(Shreedhar and Varghese 1996): each turn lets a request have `QUANTUM` tokens, so that one of ten
thousand sentences and those of a few share the model, while common requests are served whole, in
the order in which they came. A small one need not wait for the end of a page, as long as not too
many such overtake it.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence

from service.batching.sentence import Sentence

PAGE_SIZE = 256
# Source tokens of one turn: what fills a batch, and takes some hundredths of a second.
QUANTUM = 1024
# Source tokens of a request that may go before the open page, and of all that may.
SMALL = 128
LATE = 1024


class _Group:
    """What waits of one request, without what is in the page already."""

    __slots__ = ("credit", "num_tokens", "sentences")

    def __init__(self) -> None:
        self.sentences: deque[Sentence] = deque()
        self.num_tokens = 0
        self.credit = QUANTUM

    def take_turn(self, max_sentences: int) -> list[Sentence]:
        """The first sentences, as far as the credit for this turn goes."""
        taken, waiting, credit = list[Sentence](), self.sentences, self.credit
        while waiting and len(taken) < max_sentences and len(waiting[0].ids) <= credit:
            credit -= len(waiting[0].ids)
            taken.append(waiting.popleft())
        self.num_tokens -= self.credit - credit
        self.credit = credit
        return taken


class Line:
    """The waiting sentences of one beam width; whoever empties it throws it away."""

    def __init__(self) -> None:
        self._late: deque[Sentence] = deque()
        self._late_tokens = self._late_room = 0
        self._page: list[Sentence] = []  # from the last to the first
        self._page_oldest = math.inf
        self._page_groups: set[Hashable] = set()
        self._shortest_first = False
        self._groups: OrderedDict[Hashable, _Group] = OrderedDict()
        self._num_sentences = 0
        self._next_turns = 0  # tokens of every group's next turn
        self.num_tokens = 0
        self._open_tokens = 0  # of those in the page, and before it

    def __len__(self) -> int:
        return self._num_sentences

    def __iter__(self) -> Iterator[Sentence]:
        yield from self._late
        yield from reversed(self._page)
        for group in self._groups.values():
            yield from group.sentences

    @property
    def oldest(self) -> float:
        """When the longest waiting of those who are next came, or one of them who has left."""
        if self._page or self._late:
            return self._page_oldest
        return next(iter(self._groups.values())).sentences[0].enqueued

    def extend(self, sentences: Sequence[Sentence], num_tokens: int) -> None:
        """Adds sentences of one group, and of `num_tokens` source tokens."""
        key = sentences[0].group
        self._num_sentences += len(sentences)
        self.num_tokens += num_tokens
        if self._is_late(key, num_tokens):
            self._late += sentences
            self._late_tokens += num_tokens
            self._late_room -= num_tokens
            self._open_tokens += num_tokens
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group()
        self._next_turns -= min(group.num_tokens, QUANTUM)
        group.sentences += sentences
        group.num_tokens += num_tokens
        self._next_turns += min(group.num_tokens, QUANTUM)

    def first(self) -> Sentence:
        if self._late:
            return self._late[0]
        if not self._page:
            self._open_page()
        return self._page[-1]

    def pop(self) -> Sentence:
        """Takes the `first` out."""
        is_late = bool(self._late)
        sentence = self._late.popleft() if is_late else self._page.pop()
        num_tokens = len(sentence.ids)
        if is_late:
            self._late_tokens -= num_tokens
        self._num_sentences -= 1
        self.num_tokens -= num_tokens
        self._open_tokens -= num_tokens
        return sentence

    def tokens_until(self, key: Hashable, num_tokens: int) -> int:
        """Source tokens that will have joined when `num_tokens`, if a group added them now, have.

        A later request is not foreseen, though it gets its turns too.
        """
        if self._is_late(key, num_tokens):
            return num_tokens + self._late_tokens
        own = self._groups.get(key)
        before = own.num_tokens if own else 0
        most = QUANTUM * -(-(before + num_tokens) // QUANTUM)
        if most <= QUANTUM:  # most requests by far, for which all others need not be asked
            others = self._next_turns
        else:
            others = sum(min(group.num_tokens, most) for group in self._groups.values())
        return self._open_tokens + others - min(before, most) + before + num_tokens

    def remove_gone(self, now: float) -> list[Sentence]:
        """Takes out everyone who is gone; the others keep their places."""
        gone = {sentence: None for sentence in self if sentence.is_gone(now)}
        if not gone:
            return []
        self._late = deque(sentence for sentence in self._late if sentence not in gone)
        self._page = [sentence for sentence in self._page if sentence not in gone]
        for key, group in [*self._groups.items()]:
            group.sentences = deque(each for each in group.sentences if each not in gone)
            group.num_tokens = _num_tokens(group.sentences)
            if not group.sentences:
                del self._groups[key]
        self._count()
        return list(gone)

    def _count(self) -> None:
        """Counts anew everything that is otherwise kept up to date."""
        groups = self._groups.values()
        opened = [*self._late, *self._page]
        self._page_oldest = min((each.enqueued for each in opened), default=math.inf)
        self._late_tokens = _num_tokens(self._late)
        self._open_tokens = _num_tokens(opened)
        self._next_turns = sum(min(group.num_tokens, QUANTUM) for group in groups)
        self.num_tokens = self._open_tokens + sum(group.num_tokens for group in groups)
        self._num_sentences = len(opened) + sum(len(group.sentences) for group in groups)

    def _is_late(self, key: Hashable, num_tokens: int) -> bool:
        return (
            num_tokens <= min(SMALL, self._late_room)
            and bool(self._page)
            and key not in self._page_groups
            and key not in self._groups
        )

    def _open_page(self) -> None:
        page, groups = list[Sentence](), self._groups
        self._page_groups = set()
        while groups and len(page) < PAGE_SIZE:
            key, group = next(iter(groups.items()))
            self._next_turns -= min(group.num_tokens, QUANTUM)
            page += group.take_turn(PAGE_SIZE - len(page))
            self._next_turns += min(group.num_tokens, QUANTUM)
            self._page_groups.add(key)
            if not group.sentences:
                del groups[key]
            elif len(page) < PAGE_SIZE:  # otherwise its turn goes on in the next page
                group.credit += QUANTUM
                groups.move_to_end(key)
        self._page_oldest = min(sentence.enqueued for sentence in page)
        self._open_tokens += _num_tokens(page)
        self._late_room = LATE
        page.reverse()
        # Up and down in turn, so that lengths don't jump between pages.
        page.sort(key=lambda sentence: len(sentence.ids), reverse=self._shortest_first)
        self._shortest_first = not self._shortest_first
        self._page = page


def _num_tokens(sentences: Sequence[Sentence] | deque[Sentence]) -> int:
    return sum(len(sentence.ids) for sentence in sentences)
