"""dx next, dx curve"""
from ..below import degree, get_degree, read_documents
from ..choosing import learning_curve, next_documents
from ..console import command, emit, emit_json, positive, say, teller, threads_option
from ..project import Project


def add(commands):
    p = command(commands, "next", run_next, "list the documents most worth labelling next", """\
  dx next receipts                           of the project's documents without values, and those the model disputes
  dx next receipts --from new-pages.jsonl    of these too
  dx next receipts --count 50 --json
columns: document, score, labelled or not, uncertainty, disagreement, novelty, the least sure fields""")
    p.add_argument("project", metavar="PROJECT", help="the project's folder")
    p.add_argument("--from", dest="pages", action="append", default=[], metavar="FILE", help="pages to choose from too")
    p.add_argument("--count", type=positive, default=20, metavar="N", help="how many (default: 20)")
    threads_option(p)
    p = command(commands, "curve", run_curve, "say whether more labelled documents would help", """\
  dx curve receipts                          trains on 1/8, 1/4 and 1/2 of the training documents
  dx curve receipts --points 4 --json
Each is scored on the other half of the training documents; the held-out ones are not touched.""")
    p.add_argument("project", metavar="PROJECT", help="the project's folder")
    p.add_argument("--points", type=positive, default=3, metavar="N", help="how many trainings (default: 3)")
    threads_option(p)


def run_next(a):
    problems, documents = [], []
    for path in a.pages:
        documents += read_documents(path, repair=True, problems=problems)
    with degree(a.threads or get_degree()):
        found = next_documents(Project(a.project), a.count, documents=documents, tell=say)
    for problem in problems:
        say(problem)
    for one in found:
        if a.json:
            emit_json({"document": one.document, "score": one.score, "labelled": one.labelled,
                       "uncertainty": one.uncertainty, "disagreement": one.disagreement, "novelty": one.novelty,
                       "fields": list(one.fields)})
        else:
            shares = (one.uncertainty, one.disagreement, one.novelty)
            numbers = "\t".join("-" if v is None else f"{v:.3f}" for v in shares)
            emit(f"{one.document}\t{one.score:.3f}\t{'labelled' if one.labelled else 'new'}\t{numbers}\t"
                 f"{', '.join(one.fields[:3]) or '-'}")
    return 1 if problems else 0


def run_curve(a):
    with degree(a.threads or get_degree()):
        answer = learning_curve(Project(a.project), a.points, tell=teller(a), progress=False if a.quiet else None)
    if a.json:
        emit_json(answer)
        return 0
    for row in answer["rows"]:
        k, n, (low, high) = row["correct"]["k"], row["correct"]["n"], row["correct"]["interval"]
        f1 = "-" if row["f1_words"] is None else f"{row['f1_words']:.3f}"
        emit(f"{row['documents']} documents: F1 {f1}, {k} of {n} fields right (95 %: {low:.3f} to {high:.3f})")
    emit(answer["verdict"])
    return 0
