"""Runs of a page's rows as words, texts and boxes of the page."""
from .results import Part, Value


class Places:
    """Where the rows of an encoded page stand on the page."""

    def __init__(self, page, encoded):
        self.page = page
        self.word, self.start, self.end = encoded.word.tolist(), encoded.start.tolist(), encoded.end.tolist()
        self.box = encoded.box

    def parts(self, first: int, last: int) -> tuple:
        """Parts of words that the rows first..last are, one for each word."""
        parts, row = [], first
        while row <= last:
            stop = row
            while stop < last and self.word[stop + 1] == self.word[row]:
                stop += 1
            parts.append(self._part(row, stop))
            row = stop + 1
        return tuple(parts)

    def _part(self, first, last):
        index, start, end = self.word[first], self.start[first], self.end[last]
        word = self.page.words[index]
        if (start, end) == (0, len(word.text)):
            return Part(index, start, end, tuple(word.box))
        (x0, y0, _, _), (_, _, x1, y1) = self.box[first].tolist(), self.box[last].tolist()
        return Part(index, start, end, self._turned_back(x0, y0, x1, y1))

    def _turned_back(self, x0, y0, x1, y1):
        """An upright box in the page's own units: what reading.upright_boxes turned, turned back."""
        width, height = self.page.width, self.page.height
        return {0: (x0, y0, x1, y1), 90: (width - y1, x0, width - y0, x1),
                180: (width - x1, height - y1, width - x0, height - y0),
                270: (y0, height - x1, y1, height - x0)}[self.page.rotation]

    def text(self, first: int, last: int) -> str:
        """The text of the rows first..last: a space between different words."""
        words = self.page.words
        return " ".join(words[p.word].text[p.start:p.end] for p in self.parts(first, last))

    def value(self, first: int, last: int, confidence: float) -> Value:
        return Value(self.text(first, last), confidence, self.parts(first, last), (first, last))
