"""Synthetic business documents: receipts, invoices and letters in several languages and currencies, with noise.

Everything is drawn from one SplitMix64 stream a document, whole numbers only, so that the same seed gives the same
documents on every machine. `documents(count, seed)` gives the JSON objects of a pages file; `fields` holds the values
as a person would type them (an ISO date, a decimal string), not as the page prints them.
"""

MASK = 2 ** 64 - 1
SCHEMA = {"name": "demo", "fields": [
    {"name": "company", "hints": ["who issued the document"]}, {"name": "number", "type": "code"},
    {"name": "date", "type": "date", "languages": ["en", "de", "fr", "es"]}, {"name": "due", "type": "date"},
    {"name": "total", "type": "amount"}]}
NAMES = "Alder Birch Calder Dorn Elmer Fenwick Garrow Harlan Ivers Jarrow Kestler Lomond Marlow Norden Oakes Pellam " \
        "Quill Rowan Selby Thorne Ulmer Varga Weller Yardley Zander".split()
TRADES = {"en": "Hardware Bakery Books Timber Cycles Catering".split(),
          "de": "Werkzeuge Bäckerei Buchhandel Holzbau Elektro Gartenbau".split(),
          "fr": "Outillage Boulangerie Librairie Menuiserie Cycles Traiteur".split(),
          "es": "Ferretería Panadería Librería Maderas Ciclos Jardines".split()}
FORMS = {"en": ["Ltd", "Inc.", "& Sons"], "de": ["GmbH", "AG", "KG"], "fr": ["SARL", "SAS", "et Fils"],
         "es": ["S.L.", "S.A.", "e Hijos"]}
STREETS = {"en": "Mill Lane|High Street|Canal Road", "de": "Lindenweg|Hauptstraße|Am Markt",
           "fr": "rue du Moulin|avenue des Tilleuls|quai Neuf", "es": "calle Mayor|avenida del Puerto|plaza Nueva"}
TOWNS = {"en": "Ashford Brackley Corwen", "de": "Neustadt Lindau Goslar", "fr": "Rouvres Clamecy Ardes",
         "es": "Almansa Estella Ronda"}
WORDS = {  # number, date, due, total, subtotal, tax, thanks
    "en": ("Invoice no.|Receipt|Ref:", "Date|Issued on|Date:", "Due date|Payable by", "TOTAL|Amount due|Grand total",
           "Subtotal|Net", "VAT|Tax", "Thank you for your custom|All goods remain ours until paid"),
    "de": ("Rechnung Nr.|Beleg|Belegnummer:", "Datum|Ausgestellt am|Datum:", "Fällig am|Zahlbar bis",
           "GESAMT|Gesamtbetrag|Zu zahlen", "Zwischensumme|Netto", "MwSt.|USt.",
           "Vielen Dank für Ihren Einkauf|Es gelten unsere Bedingungen"),
    "fr": ("Facture n°|Ticket|Réf. :", "Date|Émise le|Date :", "Échéance|À régler avant le",
           "TOTAL|Montant dû|Net à payer", "Sous-total|Montant HT", "TVA|Taxe",
           "Merci de votre visite|Conditions au verso"),
    "es": ("Factura n.º|Recibo|Ref.:", "Fecha|Emitida el|Fecha:", "Vencimiento|Pagar antes del",
           "TOTAL|Importe total|A pagar", "Subtotal|Base", "IVA|Impuesto",
           "Gracias por su compra|Conserve este recibo")}
GOODS = {"en": "hammer|bread roll|notebook|oak board|inner tube|soup|garden hose",
         "de": "Hammer|Brötchen|Notizbuch|Eichenbrett|Schlauch|Suppe|Gartenschere",
         "fr": "marteau|petit pain|cahier|planche de chêne|pompe|soupe|tuyau",
         "es": "martillo|pan|cuaderno|tabla|bomba|sopa|pala"}
MONTHS = {"en": "January February March April May June July August September October November December".split(),
          "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
          "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
          "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()}
MONEY = {"en": ("£{}|{} GBP|${}|USD {}", ",", "."), "de": ("{} €|EUR {}|{}", ".", ","), "fr": ("{} €|{} EUR", " ", ","),
         "es": ("{} €|EUR {}", ".", ",")}
DATES = {"en": "{d:02}/{m:02}/{y}|{d} {M} {y}|{M} {d}, {y}|{y}-{m:02}-{d:02}", "de": "{d:02}.{m:02}.{y}|{d}. {M} {y}",
         "fr": "{d:02}/{m:02}/{y}|{d} {M} {y}", "es": "{d:02}/{m:02}/{y}|{d} de {M} de {y}|{d:02}-{m:02}-{y}"}
MISREAD = {"O": "0", "l": "1", "S": "5", "e": "c", "n": "u", "i": "l", "a": "o", "B": "8"}


class Draw:
    """SplitMix64, one number after the other."""

    def __init__(self, seed):
        self.state = seed & MASK

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return ((z ^ z >> 31) >> 11) * n >> 53

    def one(self, options):
        options = options.split("|") if isinstance(options, str) else options
        return options[self.below(len(options))]

    def chance(self, percent):
        return self.below(100) < percent


class Sheet:
    """A page being set: words with boxes in tenths of a point, moved by noise."""

    def __init__(self, draw, width):
        self.draw, self.width, self.words, self.y, self.lines = draw, width, [], 300, 0
        self.slope = draw.below(13) - 6  # thousandths
        self.capitals = draw.chance(25)

    def put(self, x, text, size=100, right=False, noisy=True):
        """Sets words from x on (or ending at x); returns where they end."""
        words = text.split()
        step = size * 11 // 20
        if right:
            x -= (len(" ".join(words))) * step
        for word in words:
            shown = self.noise(word) if noisy else word
            shown = shown.upper() if self.capitals and noisy else shown
            width = len(word) * step
            top = self.y + self.slope * x // 1000 + self.draw.below(7) - 3
            box = [x + self.draw.below(5), top, x + width - self.draw.below(5), top + size - self.draw.below(7)]
            self.words.append({"text": shown, "box": box, "line": self.lines})
            x += width + step
        return x

    def noise(self, word):
        """What a reader makes of a word: one of its letters misread now and then."""
        at = self.draw.below(len(word))
        return word[:at] + MISREAD.get(word[at], word[at]) + word[at + 1:] if self.draw.chance(4) else word

    def down(self, by):
        self.y += by
        self.lines += 1


def money(draw, language, cents, form):
    """An amount as the language prints it."""
    _, group, point = MONEY[language]
    whole, rest = str(cents // 100), f"{cents % 100:02d}"
    if len(whole) > 3 and draw.chance(70):
        whole = whole[:-3] + group + whole[-3:]
    return form.format(whole + point + rest)


def day(draw, language):
    """((printed form, ISO form), day number) of a date."""
    y, m, d = 2021 + draw.below(5), 1 + draw.below(12), 13 + draw.below(16)
    text = draw.one(DATES[language]).format(y=y, m=m, d=d, M=MONTHS[language][m - 1])
    return text, f"{y}-{m:02d}-{d:02d}"


def document(number, seed):
    """One document as a JSON object."""
    draw = Draw((seed << 32) ^ (number * 0x9E3779B97F4A7C15))
    language = draw.one(["en", "de", "fr", "es"])
    layout = draw.one(["receipt", "invoice", "letter"])
    words = [draw.one(w) for w in WORDS[language]]
    form = draw.one(MONEY[language][0])
    sheet = Sheet(draw, 2800 if layout == "receipt" else 5950)
    company = f"{draw.one(NAMES)} {draw.one(TRADES[language])} {draw.one(FORMS[language])}"
    code = draw.one([f"{draw.below(900000) + 100000}", f"R-{2021 + draw.below(5)}-{draw.below(9000) + 1000}",
                     f"{chr(65 + draw.below(26))}{draw.below(90000) + 10000}"])
    (date, iso), (due, due_iso) = day(draw, language), day(draw, language)
    prices = [(draw.below(30000) + 50) * (7 if layout != "receipt" and draw.chance(30) else 1)
              for _ in range(2 + draw.below(5))]
    net = sum(prices)
    tax = net * 19 // 100
    has_due = layout != "receipt" and draw.chance(70)
    parts = {"company": company, "code": (words[0], code), "date": (words[1], date),
             "due": (words[2], due) if has_due else None}
    {"receipt": receipt, "invoice": invoice, "letter": letter}[layout](sheet, language, parts)
    table(sheet, language, prices, form)
    rows = [(words[4], net), (words[5] + " 19 %", tax), (words[3], net + tax)]
    for label, cents in rows if draw.chance(75) else rows[2:]:
        left = 150 if layout == "receipt" else 3200
        sheet.put(left, label, 120 if cents == net + tax else 100)
        sheet.put(sheet.width - 300, money(draw, language, cents, form), 120 if cents == net + tax else 100, right=True,
                  noisy=False)
        sheet.down(170)
    sheet.down(150)
    sheet.put(200, words[6])
    fields = {"company": company, "number": code, "date": iso, "due": due_iso if has_due else None,
              "total": f"{(net + tax) // 100}.{(net + tax) % 100:02d}"}
    low = max(w["box"][3] for w in sheet.words) + 200
    order = sorted(range(len(sheet.words)), key=lambda i: draw.below(2 ** 32))  # the file's order says nothing
    boxes = [{**sheet.words[i], "box": [max(v, 0) for v in sheet.words[i]["box"]]} for i in order]
    for word in boxes:
        del word["line"]
    return {"id": f"{layout}-{language}-{number:03d}", "width": sheet.width + 800, "height": low + 100, "words": boxes,
            "fields": fields}


def address(sheet, language, x):
    draw = sheet.draw
    sheet.put(x, f"{draw.one(STREETS[language])} {draw.below(90) + 1}")
    sheet.down(130)
    sheet.put(x, f"{draw.below(90000) + 10000} {draw.one(TOWNS[language].split())}")
    sheet.down(200)


def receipt(sheet, language, parts):
    sheet.put(300 + sheet.draw.below(400), parts["company"], 130, noisy=False)
    sheet.down(170)
    address(sheet, language, 300)
    for label, value in sorted([parts["code"], parts["date"]], key=lambda _: sheet.draw.below(2)):
        x = sheet.put(150, label)
        sheet.put(x if sheet.draw.chance(50) else 1500, value, noisy=False)
        sheet.down(140)
    sheet.down(100)


def invoice(sheet, language, parts):
    sheet.put(300, parts["company"], 180, noisy=False)
    sheet.down(230)
    address(sheet, language, 300)
    for part in [parts["code"], parts["date"], parts["due"]]:
        if part:
            sheet.put(3200, part[0])
            sheet.put(4500, part[1], noisy=False)
            sheet.down(150)
    sheet.put(300, f"{sheet.draw.one(NAMES)} {sheet.draw.one(NAMES)}")
    sheet.down(130)
    address(sheet, language, 300)


def letter(sheet, language, parts):
    address(sheet, language, 300)
    x = sheet.put(300, parts["date"][0])
    sheet.put(x, parts["date"][1], noisy=False)
    sheet.down(250)
    x = sheet.put(300, parts["code"][0], 130)
    sheet.put(x, parts["code"][1], 130, noisy=False)
    sheet.down(250)
    if parts["due"]:
        x = sheet.put(300, parts["due"][0])
        sheet.put(x, parts["due"][1], noisy=False)
        sheet.down(180)
    sheet.put(2800, parts["company"], 120, noisy=False)
    sheet.down(250)


def table(sheet, language, prices, form):
    for price in prices:
        count = 1 + sheet.draw.below(9)
        sheet.put(200, f"{count} x {sheet.draw.one(GOODS[language])}")
        sheet.put(sheet.width - 300, money(sheet.draw, language, price, "{}"), right=True, noisy=False)
        sheet.down(140)
    sheet.down(80)


def documents(count, seed=0):
    """`count` documents; list of dict."""
    return [document(number, seed) for number in range(count)]
