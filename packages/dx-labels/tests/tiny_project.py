"""A small project: pages with a company, a date and a total, and settings that train for a second."""
import json

SCHEMA = {"fields": [{"name": "company"}, {"name": "date", "type": "date"}, {"name": "total", "type": "amount"}]}
SETTINGS = {"held_out": "0.25", "development": "0.2", "model": {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "char_channels": 16,
    "char_dim": 8, "pair_hidden": 8, "relation_size": 4, "max_words": 32},
    "train": {"epochs": 2, "batch": 2, "warmup": 2, "checkpoint_every": 3, "digest_every": 1, "augment": 0.5}}
COMPANIES = ("ACME LTD", "Blue River Co", "NORTH & SONS", "Ōsaka 商店")


def page(number, **more):
    """A page as JSON: lines of words with boxes."""
    total = f"{10 + number}.{number % 10}0"
    lines = [COMPANIES[number % 4], f"Date: {1 + number % 28:02d}/03/2021", f"Bread {number}.25", "Milk 2.50",
             f"Total {total}", f"Cash {total}", "Thank you", "Come again"]
    words = [{"text": t, "box": [10 + 40 * i, 20 * r, 45 + 40 * i, 20 * r + 12], "line": r}
             for r, line in enumerate(lines) for i, t in enumerate(line.split())]
    fields = {"company": COMPANIES[number % 4], "date": f"{1 + number % 28:02d}/03/2021", "total": total}
    return {"id": f"p{number:03d}", "width": 300, "height": 200, "words": words, "fields": fields, **more}


def write(folder, count=10, pages=None, settings=SETTINGS, schema=SCHEMA):
    """A project folder; its path as text."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in pages or map(page, range(count))]
    (folder / "pages.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(folder)
