"""The first element of a Java tree set whose comparator may contradict itself.

With a sound comparator that is the smallest element. With another one it depends on the shape of the red-black tree,
so the tree is grown here as Java grows it.

Mirrors:
    `java.util.TreeSet#first`, `java.util.TreeMap#put`.
"""

from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

import attrs

T = TypeVar("T")
_Side = Literal["left", "right"]
_OTHER: dict[_Side, _Side] = {"left": "right", "right": "left"}


def first_of_tree_set(items: Iterable[T], compare: Callable[[T, T], int]) -> T | None:
    """The leftmost element.

    Args:
        items: in the order in which they are added.
        compare: below zero if the first is to stand left of the second; at zero the second stays and the first is
            dropped.

    Returns:
        None if there are no items.
    """
    tree: _Tree[T] = _Tree(compare)
    for item in items:
        tree.add(item)
    return tree.first()


@attrs.define(eq=False)
class _Node(Generic[T]):
    item: T
    parent: "_Node[T] | None"
    left: "_Node[T] | None" = None
    right: "_Node[T] | None" = None
    red: bool = True

    def child(self, side: _Side) -> "_Node[T] | None":
        return self.left if side == "left" else self.right

    def set_child(self, side: _Side, node: "_Node[T] | None") -> None:
        setattr(self, side, node)
        if node is not None:
            node.parent = self

    def side(self, child: "_Node[T]") -> _Side:
        return "left" if self.left is child else "right"


class _Tree(Generic[T]):
    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self._compare = compare
        self._root: _Node[T] | None = None

    def first(self) -> T | None:
        node = self._root
        while node is not None and node.left is not None:
            node = node.left
        return None if node is None else node.item

    def add(self, item: T) -> None:
        if self._root is None:
            self._root = _Node(item, None, red=False)
            return
        node: _Node[T] | None = self._root
        while node is not None:
            order, parent = self._compare(item, node.item), node
            if order == 0:
                return
            side: _Side = "left" if order < 0 else "right"
            node = parent.child(side)
        new = _Node(item, parent)
        parent.set_child(side, new)
        self._balance(new)

    def _balance(self, node: _Node[T]) -> None:
        while node.parent is not None and node.parent.red:
            parent, grandparent = node.parent, node.parent.parent
            assert grandparent is not None  # the root is black
            side = grandparent.side(parent)
            uncle = grandparent.child(_OTHER[side])
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                node = grandparent
                continue
            if parent.child(side) is not node:
                self._rotate(parent, side)
                parent = node
            parent.red, grandparent.red = False, True
            self._rotate(grandparent, _OTHER[side])
            break
        assert self._root is not None
        self._root.red = False

    def _rotate(self, node: _Node[T], side: _Side) -> None:
        """Move a node down to one side; its child on the other side takes its place."""
        risen, above = node.child(_OTHER[side]), node.parent
        assert risen is not None
        node.set_child(_OTHER[side], risen.child(side))
        if above is None:
            self._root, risen.parent = risen, None
        else:
            above.set_child(above.side(node), risen)
        risen.set_child(side, node)
