"""How many objects something holds."""

import gc


def objects_of(root):
    """Objects that the garbage collector finds from one on, and that are neither classes nor modules."""
    found, left = {id(root): root}, [root]
    while left:
        for one in gc.get_referents(left.pop()):
            if id(one) not in found and gc.is_tracked(one) and not isinstance(one, type | type(gc)):
                found[id(one)] = one
                left.append(one)
    return len(found)
