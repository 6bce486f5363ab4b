"""Where a value's words are found, and every border between the outcomes."""
import pytest
from dx_labels.below import Page, Word, encode_page
from dx_labels.grounding import Rows, ground
from dx_labels.schema import Field
from dx_labels.similar import distances, most_similar

TEXT, CODE = Field("name"), Field("no", "code")
DAY, TOTAL, COUNT = Field("day", "date"), Field("total", "amount"), Field("count", "number")


def rows_of(*lines):
    """Rows of a page with these lines of words."""
    words = []
    for y, line in enumerate(lines):
        x = 5
        for text in line.split(" "):
            words.append(Word(text, (x, 5 + 20 * y, x + 8 * len(text), 17 + 20 * y)))
            x += 8 * len(text) + 6
    page = Page("p", 4000, 20 * len(lines) + 10, words)
    return Rows(page, encode_page(page))


def found(rows, field, value, **options):
    g = ground(rows, field, value, **options)
    return g.outcome, [rows.text(*run) for run in g.runs]


def test_exact_against_normalised():
    rows = rows_of("ACME Sdn. Bhd.", "12 Main St")
    assert found(rows, TEXT, "ACME Sdn. Bhd.") == ("exact", ["ACME Sdn. Bhd."])
    assert found(rows, TEXT, "acme SDN BHD") == ("normalised", ["ACME Sdn. Bhd."])
    assert ground(rows, TEXT, "acme SDN BHD").how == ("case", "punctuation")
    assert found(rows, TEXT, "AC ME SdnBhd") == ("normalised", ["ACME Sdn. Bhd."])
    assert found(rows, TEXT, "ACME") == ("exact", ["ACME"])
    assert found(rows, TEXT, "ACM") == ("absent", [])
    assert found(rows, TEXT, "Bhd 12") == ("normalised", ["Bhd. 12"])  # over the end of a line


def test_unicode():
    rows = rows_of("Müller ﬁne ＡＧ")
    assert ground(rows, TEXT, "Müller fine AG").how == ("unicode",)
    assert found(rows, TEXT, "Mueller fine AG")[0] == "absent"


def test_runs_begin_and_end_with_letters_or_digits():
    rows = rows_of("- A & B - :")
    g = ground(rows, TEXT, "A B")
    assert [rows.text(*run) for run in g.runs] == ["A & B"]
    assert ground(rows, TEXT, "A & B").outcome == "exact"


def test_every_place_is_kept():
    rows = rows_of("total 12.00", "cash 12.00", "due RM12.00 12")
    g = ground(rows, TOTAL, "12.00")
    assert g.outcome == "exact" and [rows.text(*run) for run in g.runs] == ["12.00", "12.00", "12.00"]
    assert [rows.text(*run) for run in ground(rows, TOTAL, "RM12.00").runs] == ["RM12.00"]


def test_the_surer_rank_wins():
    rows = rows_of("1.234,50 1,234.50")
    # the same letters and digits: one rank
    assert found(rows, TOTAL, "1,234.50") == ("exact", ["1.234,50", "1,234.50"])
    rows = rows_of("1,234.50 1234.5")
    assert found(rows, TOTAL, "1,234.50") == ("exact", ["1,234.50"])


def test_an_amount_is_not_its_digits():
    rows = rows_of("820 8.2 -8.20 (8.20) 8,20")
    assert found(rows, TOTAL, "8.20") == ("normalised", ["8,20"])
    assert found(rows_of("820 -8.20 82.0"), TOTAL, "8.20") == ("absent", [])
    assert found(rows_of("(8.20)"), TOTAL, "-8.20")[0] == "normalised"


@pytest.mark.parametrize("printed, value, how", [
    ("1.234,56", "1234.56", ("punctuation",)), ("1 234.560", "1234.56", ("figures",)), ("( 12.00 )", "-12",
                                                                                        ("figures",)),
    ("1'234.50", "1234.5", ("figures",)), ("EUR 1.234,50", "1234.5", ("figures",)),
    ("1O.5O", "10.50", ("figures", "OCR")), ("1.234", "1.2340", ("figures", "ambiguous decimal sign")),
])
def test_amounts_after_normalisation(printed, value, how):
    g = ground(rows_of(f"total {printed} thanks"), TOTAL, value)
    assert (g.outcome, g.how) == ("normalised", how)


@pytest.mark.parametrize("printed", ["12/03/2018", "12 MAR 2018", "March 12, 2018", "12. März 2018", "12-03-18",
                                     "2018-03-12", "12 / 3 / 2018", "12MAR18", "l2/O3/2018"])
def test_dates_after_normalisation(printed):
    rows = rows_of(f"on {printed} at 10:00", "due 28/03/2018")
    assert found(rows, DAY, "2018-03-12") in [("normalised", [printed]), ("exact", [printed])]


def test_a_page_that_settles_the_order_is_heard():
    assert found(rows_of("05/04/2018", "19/04/2018"), DAY, "2018-04-05")[0] == "normalised"
    assert found(rows_of("05/04/2018", "19/04/2018"), DAY, "2018-05-04")[0] == "absent"
    g = ground(rows_of("05/04/2018"), DAY, "2018-05-04")
    assert (g.outcome, g.how) == ("normalised", ("date", "ambiguous order"))


def test_computed_only_when_said_or_a_sum_of_at_most_three():
    rows = rows_of("a 10.00", "b 2.50", "c 0.30", "d 100.00")
    assert ground(rows, TOTAL, "10.00", computed=True).outcome == "computed"
    terms = {"12.50": "2.50 + 10.00", "7.50": "10.00 - 2.50", "12.80": "0.30 + 2.50 + 10.00",
             "97.80": "100.00 - 2.50 + 0.30",
             "87.50": "100.00 - 2.50 - 10.00"}
    for value, how in terms.items():
        g = ground(rows, TOTAL, value)
        assert g.outcome == "computed" and sorted(g.how[0].split()) == sorted(how.split())
    assert ground(rows, TOTAL, "112.80").outcome == "absent"  # four amounts
    assert ground(rows, TOTAL, "20.00").outcome == "absent"  # 10.00 is printed once
    assert ground(rows_of("10.00 10.00"), TOTAL, "20.00").how == ("10.00 + 10.00",)
    assert ground(rows, TEXT, "12.50").outcome == "absent"  # a text is never computed
    assert ground(rows_of("3 x 10.00", "2.50"), TOTAL, "13.00").outcome == "absent"  # 3 is no amount with cents


def test_none_and_absent():
    rows = rows_of("a b")
    assert ground(rows, TEXT, None).outcome == ground(rows, TEXT, "  ").outcome == "none"
    assert ground(rows, TEXT, "c").outcome == "absent"
    assert ground(rows_of("-"), TEXT, "-").outcome == "exact" and ground(rows, TEXT, "*").outcome == "absent"


def test_a_value_in_pieces_is_scattered():
    rows = rows_of("Main Street 12 Tel 555", "Town 99999 Fax 556")
    g = ground(rows, TEXT, "Main Street 12 Town 99999")
    assert g.outcome == "scattered" and [rows.text(*run) for run in g.runs] == ["Main Street 12", "Town 99999"]
    assert not g.grounded and ground(rows, TEXT, "Main Street 12 City").outcome == "absent"


def test_misspelt_values_only_when_asked_for():
    rows = rows_of("OLD TOWN KOPITIAM SDN BHD", "THE OTHER LINE HERE")
    assert ground(rows, TEXT, "OLD TOWN KOPITAM SND BHD").outcome == "absent"
    g = ground(rows, TEXT, "OLD TOWN KOPITAM SND BHD", similar=True)
    assert g.outcome == "similar" and rows.text(*g.runs[0]) == "OLD TOWN KOPITIAM SDN BHD"
    assert ground(rows, TEXT, "NEW CITY BAKERY SDN BHD", similar=True).outcome == "absent"
    assert ground(rows, TOTAL, "1234567.00", similar=True).outcome == "absent"  # figures are never similar


def plain_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, last = [i], row
        for j, y in enumerate(b, 1):
            row.append(min(last[j - 1] + (x != y), last[j] + 1, row[-1] + 1))
    return row[-1]


def test_distances_are_edit_distances(rng):
    for _ in range(200):
        a = "".join(rng.choice(list("ABC"), rng.integers(1, 90)))
        pieces = ["".join(rng.choice(list("ABC"), rng.integers(0, 30))) for _ in range(3)]
        joined = ["".join(pieces[:k + 1]) for k in range(3)]
        assert list(distances(a, pieces)) == [(plain_distance(a, j), len(j)) for j in joined]


def test_similarity_ties_go_to_the_earliest_then_the_shortest():
    assert most_similar(["ABCDEFGHIX", "ABCDEFGHIY"], "ABCDEFGHIZ") == ((0, 0), 1)
    assert most_similar(["ABCDE"], "ABCDF") == (None, None)  # too short to be similar
    assert most_similar(["ABCDEFGHI", "J"], "ABCDEFGHIJ") == ((0, 1), 0)


def test_pieces_of_one_word_become_one_span():
    page = Page("p", 300, 50, [Word("DATE:12/03/2018", (5, 5, 125, 17))])
    rows = Rows(page, encode_page(page))
    assert found(rows, DAY, "12/03/2018") == ("exact", ["12/03/2018"])
    g = ground(rows, DAY, "12/03/2018")
    assert rows.spans(*g.runs[0]) == ((0, 5, 15),) and rows.spans(0, len(rows) - 1) == ((0, 0, 15),)


def test_a_page_of_5000_words_and_a_page_of_one():
    rows = rows_of(*[" ".join(f"w{i}x{j}" for j in range(50)) for i in range(100)])
    assert found(rows, TEXT, "w99x48 w99x49") == ("exact", ["w99x48 w99x49"])
    for field in (TEXT, DAY, TOTAL, CODE, COUNT):
        assert ground(rows, field, "77.77", similar=True).outcome == "absent"
    assert found(rows_of("alone"), TEXT, "ALONE")[0] == "normalised"


def test_likely_beginnings_lose_no_similar_run(rng):
    for _ in range(150):
        wanted = "".join(rng.choice(list("ABCD"), rng.integers(6, 40)))
        near = list(wanted)
        for _ in range(int(rng.integers(0, 6))):
            near[int(rng.integers(0, len(near)))] = str(rng.choice(list("ABCD")))
        noise = ["".join(rng.choice(list("ABCD"), rng.integers(0, 9))) for _ in range(12)]
        cut = sorted(rng.integers(0, len(near), 2).tolist())
        parts = ["".join(near[:cut[0]]), "".join(near[cut[0]:cut[1]]), "".join(near[cut[1]:])]
        keys = [*noise[:6], *parts, *noise[6:]]
        best = None
        for first in range(len(keys)):  # every run, by the plain distance
            for last in range(first, len(keys)):
                joined = "".join(keys[first:last + 1])
                longer = max(len(joined), len(wanted))
                d = plain_distance(wanted, joined) if 100 * len(joined) <= 130 * len(wanted) else longer
                if keys[first] and keys[last] and 100 * d <= 15 * longer and (
                        best is None or d * best[1] < best[0] * longer):
                    best = d, longer, (first, last)
        assert most_similar(keys, wanted) == ((best[2], best[0]) if best else (None, None))


def test_values_in_another_script():
    rows = rows_of("東京都 千代田区 合計 １２００ 円", "Москва 12")
    assert found(rows, TEXT, "東京都千代田区") == ("normalised", ["東京都 千代田区"])
    assert found(rows, TOTAL, "1200")[0] == "normalised" and found(rows, TEXT, "МОСКВА")[0] == "normalised"
