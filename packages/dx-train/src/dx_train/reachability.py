"""Gradient reachability: the first and last trainable node, and whose activations a backward pass needs."""
from collections.abc import Sequence
from dataclasses import dataclass

from .trainable import ContractError


@dataclass(frozen=True)
class Node:
    """A step of the forward pass: its name and the names of its parameters (none: it only computes)."""

    name: str
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reach:
    """first, last : the first and last node with a trainable parameter, in forward order · detached : nodes before
    `first`, which can run without keeping anything and whose output can be handed on without a gradient · kept : nodes
    from `first` on, whose activations (or what computes them again) a backward needs, frozen ones included"""

    first: str
    last: str
    detached: tuple[str, ...]
    kept: tuple[str, ...]

    def to_json(self) -> dict:
        """Plain JSON for a training manifest."""
        return {"first": self.first, "last": self.last, "kept": list(self.kept)}


def reach(nodes: Sequence[Node], trainable, no_gradient=()) -> Reach:
    """What a trainable set means for the graph.

    nodes : in forward order, up to the loss · trainable : parameter names · no_gradient : names of nodes that run
    without keeping anything

    ContractError: a trainable parameter that no node has, or no trainable parameter at all; a node without gradient at
    or after the first trainable one: everything trainable from there back would get none, while the forward pass looks
    the same.
    """
    wanted = dict.fromkeys(trainable)
    here = [node.name for node in nodes if any(p in wanted for p in node.parameters)]
    known = dict.fromkeys(p for node in nodes for p in node.parameters)
    for name in wanted:
        if name not in known:
            raise ContractError(f"trainable parameter {name!r} belongs to no node of the graph")
    if not here:
        raise ContractError("no node has a trainable parameter")
    names = [node.name for node in nodes]
    start = names.index(here[0])
    for name in no_gradient:
        if name not in names:
            raise ContractError(f"{name!r} is no node of the graph")
        if names.index(name) >= start:
            raise ContractError(f"node {name!r} runs without gradient, but the first trainable node is {here[0]!r}: "
                                "its parameters would get no gradient")
    return Reach(here[0], here[-1], tuple(names[:start]), tuple(names[start:]))
