"""Readers of data sets in our own JSON-lines form: plain pages, SROIE, FUNSD, CORD, DeepForm, invoice2data."""
from ..below import read_documents
from ..schema import schema_from_json
from .base import Imported, joined

SROIE = {"name": "sroie", "date_order": "dmy", "fields": [
    {"name": "company"}, {"name": "date", "type": "date"}, {"name": "address"}, {"name": "total", "type": "amount"}]}
DEEPFORM = {"name": "deepform", "date_order": "mdy", "decimal": ".", "fields": [
    {"name": "contract_num", "type": "code"}, {"name": "advertiser"}, {"name": "gross_amount", "type": "amount"},
    {"name": "flight_from", "type": "date"}, {"name": "flight_to", "type": "date"}]}
CORD_CLASSES = (
    "menu.nm menu.num menu.unitprice menu.cnt menu.discountprice menu.price menu.itemsubtotal menu.vatyn menu.etc "
    "menu.sub_nm menu.sub_unitprice menu.sub_cnt menu.sub_price menu.sub_etc void_menu.nm void_menu.price "
    "sub_total.subtotal_price sub_total.discount_price sub_total.service_price sub_total.othersvc_price "
    "sub_total.tax_price sub_total.etc total.total_price total.total_etc total.cashprice total.changeprice "
    "total.creditcardprice total.emoneyprice total.menutype_cnt total.menuqty_cnt").split()
FUNSD_ROLES = ("header", "question", "answer")
CONSTANTS = ("issuer", "currency", "desc")  # of invoice2data: what its templates say, not what the page says


def _read(path):
    problems = []
    documents = list(joined(read_documents(path, repair=True, problems=problems)))
    notes = [text for d in documents for page in d.pages for text in page.repairs]
    return Imported(documents, problems=problems, notes=notes)


def _fields(document):
    """The `fields` that a file gives a document; dict."""
    found = document.extra.get("fields")
    for page in document.pages if found is None else ():
        found = page.extra.get("fields")
        if found is not None:
            break
    return found if isinstance(found, dict) else {}


def read_pages_source(path, schema=None):
    """Pages or documents, one a line, whose `fields` (where they have them) are the schema's values. Without a schema
    the fields are those that occur, sorted by name, of type text."""
    out = _read(path)
    if schema is None:
        names = sorted({name for d in out.documents for name in _fields(d)})
        schema = schema_from_json({"fields": names}) if names else None
    out.schema = schema
    if schema is not None:
        out.values = {d.id: {k: v for k, v in _fields(d).items() if k in schema.names} for d in out.documents}
    return out


def read_sroie(path, schema=None):
    """SROIE receipts: company, date, address, total."""
    return read_pages_source(path, schema or schema_from_json(SROIE))


def read_deepform(path, schema=None):
    """DeepForm political-advert documents of several pages: contract number, advertiser, gross amount, flight dates."""
    return read_pages_source(path, schema or schema_from_json(DEEPFORM))


def read_funsd(path, schema=None):
    """FUNSD forms: roles header, question, answer; links question → answer and header → question. The pages keep
    `entities` and `links`; the order of words in the file, which gives the entities away, means nothing."""
    out = _read(path)
    out.schema, out.roles = schema, FUNSD_ROLES
    for document in out.documents:
        for page in document.pages:
            page.extra.pop("groups", None)  # entity numbers: the entities say it
    return out


def read_cord(path, schema=None):
    """CORD receipts: 30 classes of words as repeated fields with given words, and line items as groups."""
    out = _read(path)
    out.schema = schema or schema_from_json({"name": "cord", "fields": [
        {"name": name, "repeated": True} for name in CORD_CLASSES]})
    for document in out.documents:
        values = out.values[document.id] = {}
        for number, page in enumerate(document.pages):
            for entity in page.extra.get("entities") or ():
                if entity.get("label") not in out.schema.names or not entity.get("words"):
                    out.problems.append(f"page {page.id!r}: entity {entity.get('id')} ({entity.get('label')!r}, "
                                        f"{len(entity.get('words', ()))} words) left out")
                    continue
                text = " ".join(page.words[w].text for w in entity["words"])
                values.setdefault(entity["label"], []).append({"value": text, "words": entity["words"], "page": number})
    return out


def read_invoice2data(path, schema=None):
    """invoice2data's own test invoices: what its templates yield. Constants of a template (issuer, currency, desc) and
    lists are left out; a field is an amount where all its values are numbers with the name amount…, a date where its
    name begins with date."""
    out = _read(path)
    found = {d.id: {k: v for k, v in _fields(d).items() if k not in CONSTANTS and isinstance(v, (str, int, float))}
             for d in out.documents}
    if schema is None:
        names = sorted({name for values in found.values() for name in values})
        kinds = {n: "amount" if n.startswith("amount") else "date" if n.startswith("date") else "text" for n in names}
        schema = schema_from_json({"name": "invoice2data", "fields": [{"name": n, "type": kinds[n]} for n in names]})
    out.schema = schema
    out.values = {name: {k: v for k, v in values.items() if k in schema.names} for name, values in found.items()}
    for document in out.documents:
        for name, value in _fields(document).items():
            if isinstance(value, (list, dict)):
                out.notes.append(f"document {document.id!r}: field {name!r} is a list: left out")
    return out
