"""Which documents are held out: the seed's rule, written out (numerics.md rule 21)."""
import hashlib
from fractions import Fraction


def order_key(seed, name):
    """(number, id bytes) that documents are ordered by: the first 8 bytes, little endian, of SHA-256("<seed>:<id>"),
    then the id's UTF-8 bytes."""
    data = name.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(f"{seed}:".encode() + data).digest()
    return int.from_bytes(digest[:8], "little"), data


def held_out_count(count, fraction):
    """max(1, round(count · fraction)), at most count - 1; int. round is half to even of the exact product with the
    decimal as typed.

    Parameters
    ----------
    count : int, at least 2
    fraction : str, int or Fraction; a float is taken as the shortest decimal that reads back to it
    """
    if count < 2:
        raise ValueError(f"{count} documents: expected at least 2 to hold one out")
    share = Fraction(repr(fraction)) if isinstance(fraction, float) else Fraction(fraction)
    if not 0 < share < 1:
        raise ValueError(f"fraction = {fraction}: expected more than 0 and less than 1")
    return min(max(1, round(count * share)), count - 1)


def split(names, fraction, seed, groups=None):
    """(kept, held out), both in the rule's order.

    Parameters
    ----------
    names : ids of the documents, distinct
    fraction : share to hold out, as held_out_count
    seed : int
    groups : dict id → group, or None; documents of one group stay on one side. Groups are then ordered by the rule
        (with the group's name as the id; a document without a group is a group by its id), and are held out whole as
        long as fewer than the wanted number are; the last group that is kept never goes.

    Examples
    --------
    >>> kept, held = split(["a", "b", "c", "d"], "0.25", 0)
    >>> len(kept), len(held)
    (3, 1)
    """
    names = list(names)
    if len(set(names)) != len(names):
        raise ValueError("names holds an id twice")
    wanted = held_out_count(len(names), fraction)
    if groups is None:
        order = sorted(names, key=lambda name: order_key(seed, name))
        return order[wanted:], order[:wanted]
    members = {}
    for name in sorted(names, key=lambda name: order_key(seed, name)):
        group = groups.get(name)
        members.setdefault(f"document {name}" if group is None else f"group {group}", []).append(name)
    if len(members) < 2:
        raise ValueError("all documents are of one group: expected at least two groups to hold one out")
    held, kept = [], []
    order = sorted(members, key=lambda group: order_key(seed, group.split(" ", 1)[1]))
    for i, group in enumerate(order):
        side = held if len(held) < wanted and i < len(order) - 1 else kept
        side += members[group]
    return kept, held


def three_parts(names, held_fraction, development_fraction, seed, groups=None):
    """(training, development, held out): held out by the rule with the seed, development cut from the rest by the rule
    with seed + 1."""
    rest, held = split(names, held_fraction, seed, groups)
    training, development = split(rest, development_fraction, seed + 1, groups)
    return training, development, held
