"""Row identity: the row table and its masks, pieces of words, spans, first and last rows under every layout."""
import numpy as np
import pytest
from dx_model import readout

# token, attention, special, sequence, type id, word id, offset: "playing in Rome" beside "who"
TRACE = [("[CLS]", 1, 1, None, 0, None, None), ("play", 1, 0, 0, 0, 0, (0, 4)), ("##ing", 1, 0, 0, 0, 0, (4, 7)),
         ("in", 1, 0, 0, 0, 1, (8, 10)), ("rome", 1, 0, 0, 0, 2, (11, 15)), ("[SEP]", 1, 1, None, 0, None, None),
         ("who", 1, 0, 1, 1, 0, (0, 3)), ("[SEP]", 1, 1, None, 1, None, None), ("[PAD]", 0, 1, None, 0, None, None)]


def table(trace=TRACE, **changes):
    _, attention, special, sequence, types, words, offsets = zip(*trace, strict=True)
    given = {"attention": attention, "special": special, "sequence": sequence, "type_ids": types, "word_ids": words,
             "offsets": offsets}
    return readout.row_table(**{**given, **changes})


def check_row(s, valid, content, sequences, source, first):
    """All predicates of one row of the trace."""
    t = table()
    assert (t.valid[s], t.special[s], t.content[s], t.source[s]) == (valid, TRACE[s][2] == 1, content, source)
    assert [u for u in (0, 1) if t.in_sequence(u)[s]] == sequences
    assert readout.first_piece_mask(t)[s] == first
    assert t.type_ids[s] == TRACE[s][4] and t.word_ids[s] == (-1 if TRACE[s][5] is None else TRACE[s][5])
    assert tuple(t.offsets[s]) == (TRACE[s][6] or (-1, -1))


def test_row_0_first_special():
    check_row(0, True, False, [], False, False)


def test_row_1_first_piece():
    check_row(1, True, True, [0], True, True)


def test_row_2_second_piece_of_the_word():
    check_row(2, True, True, [0], True, False)


def test_row_3_next_word():
    check_row(3, True, True, [0], True, True)


def test_row_4_last_word_of_the_first_source():
    check_row(4, True, True, [0], True, True)


def test_row_5_separator():
    check_row(5, True, False, [], False, False)


def test_row_6_word_of_the_second_source():
    """Word ids restart: (1, 0) is not (0, 0)."""
    check_row(6, True, True, [1], True, True)


def test_row_7_separator_with_a_type_but_no_source():
    check_row(7, True, False, [], False, False)
    t = table()
    assert t.type_ids[7] == 1 and not t.in_sequence(1)[7]  # type_ids == 1 would take the separator for context


def test_row_8_padding():
    check_row(8, False, False, [], False, False)


def test_policy_leaves_a_visible_row_out_of_content():
    t = table(policy=[1, 0, 1, 1, 1, 1, 1, 1, 1])
    assert t.valid[1] and not t.content[1] and t.content[2]


def test_source_ownership_does_not_come_from_type_ids():
    """A checkpoint with type ids of zero everywhere keeps its sequences."""
    t = table(type_ids=[0] * 9)
    assert np.flatnonzero(t.in_sequence(1)).tolist() == [6]


def seed_first_pieces(t):
    """The rule as a loop: what came before is forgotten at every row that is not content or has no word."""
    out, previous = [], None
    for s in range(len(t)):
        owner = (t.sequence[s], t.word_ids[s])
        mapped = t.content[s] and -1 not in owner
        out.append(bool(mapped and owner != previous))
        previous = owner if mapped else None
    return out


def test_first_pieces_are_those_of_the_loop(rng):
    for _ in range(300):
        n = int(rng.integers(0, 12))
        special = rng.integers(0, 4, n) == 0
        sequence = np.where(special, -1, rng.integers(0, 2, n))
        words = np.where(special | (rng.integers(0, 5, n) == 0), -1, rng.integers(0, 2, n))
        t = readout.row_table(rng.integers(0, 4, n) > 0, special, sequence, words, policy=rng.integers(0, 4, n) > 0)
        assert readout.first_piece_mask(t).tolist() == seed_first_pieces(t)


def test_first_piece_restarts_after_a_row_that_is_not_content():
    """One word with its first, then its middle piece left out by the policy, and with a hole in attention."""
    word = dict(special=[0] * 4, sequence=[0] * 4, word_ids=[5] * 4)
    for excluded, want in ((0, [1]), (1, [0, 2]), (2, [0, 3])):
        keep = np.arange(4) != excluded
        for masks in (dict(attention=[1] * 4, policy=keep), dict(attention=keep)):
            assert np.flatnonzero(readout.first_piece_mask(readout.row_table(**word, **masks))).tolist() == want


def test_first_pieces_do_not_depend_on_padding_side():
    def padded(before, after):
        pads = [("[PAD]", 0, 1, None, 0, None, None)]
        t = table(pads * before + TRACE[:8] + pads * after)
        return np.flatnonzero(readout.first_piece_mask(t)) - before
    assert padded(0, 0).tolist() == padded(3, 0).tolist() == padded(0, 5).tolist() == [1, 3, 4, 6]


def test_overlap_is_half_open_and_within_the_sequence():
    t = table()
    def rows(*span):
        return readout.rows_overlapping_span(t, *span).tolist()
    assert rows(0, 0, 7) == [1, 2] and rows(0, 4, 7) == [2] and rows(0, 3, 5) == [1, 2]
    assert rows(0, 7, 8) == []  # the blank between two pieces touches both and overlaps neither
    assert rows(0, 0, 3) == [1] and rows(1, 0, 3) == [6]  # the same offsets, another sequence
    assert rows(0, 11, 15) == [4] and rows(2, 0, 3) == []
    with pytest.raises(readout.ReadoutError, match="span = .3, 3."):
        rows(0, 3, 3)


def test_widths_of_adjacent_pieces_add_up():
    t = table()
    assert t.offsets[1, 1] == t.offsets[2, 0] and (t.offsets[1:3, 1] - t.offsets[1:3, 0]).tolist() == [4, 3]


def test_a_truncated_answer_has_the_null_target_and_is_not_clipped():
    whole, cut = table(), table([*TRACE[:2], *TRACE[5:]])  # truncation took rows 2..4
    assert readout.span_target(whole, 0, 0, 7) == (1, 2)
    assert readout.span_target(cut, 0, 0, 7) == (0, 0)  # "play" survives: (1, 1) would be a false label
    assert readout.span_target(cut, 0, 0, 7, truncated="drop") is None
    assert readout.span_target(cut, 0, 0, 4) == (1, 1)
    assert readout.span_target(cut, 0, 8, 10) == (0, 0)
    hidden = table(attention=[1, 1, 0, 1, 1, 1, 1, 1, 0])
    assert readout.span_target(hidden, 0, 0, 7) == (0, 0)  # a hole inside the answer
    with pytest.raises(readout.ReadoutError, match="null_row = 8"):
        readout.span_target(cut, 0, 8, 10, null_row=8)


def test_rows_go_back_to_source_characters():
    text, t = "playing in Rome", table()
    sequence, start, end = readout.span_of_rows(t, 1, 4)
    assert sequence == 0 and text[start:end] == "playing in Rome"
    assert text[slice(*readout.span_of_rows(t, 1, 2)[1:])] == "playing"
    for first, last in ((0, 1), (4, 5), (4, 6), (2, 1), (1, 9)):
        with pytest.raises(readout.ReadoutError, match="span of rows"):
            readout.span_of_rows(t, first, last)


def test_no_offsets_are_refused_and_never_guessed():
    t = table(offsets=None)
    for call in (lambda: t.source, lambda: readout.rows_overlapping_span(t, 0, 0, 3),
                 lambda: readout.span_target(t, 0, 0, 3), lambda: readout.span_of_rows(t, 1, 1)):
        with pytest.raises(readout.ReadoutError, match="offsets") as caught:
            call()
        assert caught.value.field == "rows.offsets"
    assert t.content.tolist() == table().content.tolist()  # what needs no offsets works


@pytest.mark.parametrize("changes, field", [
    ({"special": [0] * 8}, "rows.special.shape"), ({"attention": [2] + [1] * 8}, "rows.attention"),
    ({"attention": [0.5] * 9}, "rows.attention"), ({"sequence": [0.0] * 9}, "rows.sequence"),
    ({"sequence": [0] * 9}, "rows.sequence[0]"), ({"sequence": None}, "rows.word_ids[1]"),
    ({"sequence": [-2] * 9}, "rows.sequence[0]"), ({"offsets": [(0, 1)] * 9}, "rows.offsets[0]"),
    ({"offsets": [(3, 1)] * 9}, "rows.offsets[0]"), ({"offsets": [None] * 8}, "rows.offsets.shape")])
def test_a_wrong_table_names_its_field(changes, field):
    with pytest.raises(readout.ReadoutError) as caught:
        table(**changes)
    assert caught.value.field == field and str(caught.value).startswith(field)


def test_absent_offsets():
    assert readout.normalize_absent_offsets([None, (0, 0), (2, 5), (5, 5), (0, 3)], [0, 0, 0, 0, 1]).tolist() == [
        [-1, -1], [-1, -1], [2, 5], [-1, -1], [-1, -1]]


def encoding(**changes):
    """What a fast tokenizer gives for the trace; inserted rows have offsets (0, 0)."""
    _, attention, special, sequence, types, words, offsets = zip(*TRACE, strict=True)
    fields = {"input_ids": list(range(9)), "attention_mask": list(attention), "special_tokens_mask": list(special),
              "token_type_ids": list(types), "offset_mapping": [o or (0, 0) for o in offsets],
              "sequence_ids": list(sequence), "word_ids": list(words), **changes}
    return {name: value for name, value in fields.items() if value is not None}


def test_a_tokenizer_encoding_becomes_a_table():
    class Methods(dict):
        """A mapping whose alignment is behind methods."""
        def sequence_ids(self):
            return encoding()["sequence_ids"]

        def word_ids(self):
            return encoding()["word_ids"]

    t, want = readout.from_encoding(Methods(encoding(sequence_ids=None, word_ids=None))), table()
    for name in ("attention", "special", "policy", "sequence", "type_ids", "word_ids", "offsets"):
        assert np.array_equal(getattr(t, name), getattr(want, name)), name
    assert t.ids.tolist() == list(range(9))


@pytest.mark.parametrize("missing, field", [("offset_mapping", "offsets"), ("word_ids", "word_ids"),
                                            ("sequence_ids", "sequence"), ("special_tokens_mask", "special")])
def test_a_tokenizer_without_alignment_is_refused(missing, field):
    with pytest.raises(readout.ReadoutError) as caught:
        readout.from_encoding(encoding(**{missing: None}))
    assert caught.value.field == f"rows.{field}" and missing in str(caught.value)


LAYOUTS = {"right": [1, 1, 1, 0, 0], "left": [0, 0, 1, 1, 1], "hole": [1, 0, 1, 0, 1], "packed": [0, 1, 1, 1, 0]}


def test_rea_02_last_row_by_mask():
    """Case rea-02: [0,0,1,1,1] → 4, [1,1,1,0,0] → 2, [1,0,1,0,1] → 4; nothing selected is refused."""
    assert {name: readout.boundary_index(m, "last") for name, m in LAYOUTS.items()} == {
        "right": 2, "left": 4, "hole": 4, "packed": 3}
    assert {name: readout.boundary_index(m, "first") for name, m in LAYOUTS.items()} == {
        "right": 0, "left": 2, "hole": 0, "packed": 1}
    counted = {name: sum(m) - 1 for name, m in LAYOUTS.items()}  # what the shortcut gives
    assert [name for name, m in LAYOUTS.items() if counted[name] == readout.boundary_index(m, "last")] == ["right"]
    for mask in ([0, 0, 0, 0, 0], []):
        with pytest.raises(readout.ReadoutError, match="rows.selected = 0"):
            readout.boundary_index(mask, "last")


def test_content_that_selects_padding_is_refused():
    attention, content = np.array([1, 1, 1, 1, 0], bool), np.array([0, 1, 1, 0, 0], bool)
    assert readout.admit_content_mask(attention, content) is content
    with pytest.raises(readout.ReadoutError, match=r"rows.content = \[\(4,\)\]: .*padding"):
        readout.admit_content_mask(attention, np.array([0, 1, 1, 0, 1], bool))
    with pytest.raises(readout.ReadoutError, match="rows.content.dtype"):
        readout.admit_content_mask(attention, content.astype(np.uint8))


def test_prompt_policy_counts_visible_rows():
    assert readout.prompt_policy([0, 0, 1, 1, 1, 1], 2).tolist() == [True, True, False, False, True, True]
    with pytest.raises(readout.ReadoutError, match="prompt_rows = 5"):
        readout.prompt_policy([0, 0, 1, 1, 1, 1], 5)
