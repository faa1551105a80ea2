"""How many objects something holds."""

import gc


def objects_of(root):
    """Objects that the garbage collector finds from one on, and that are neither classes nor modules."""
    found, left = {id(root): root}, [root]
    while left:
        for get_referent in gc.get_referents(left.pop()):
            if (
                id(get_referent) not in found
                and gc.is_tracked(get_referent)
                and not isinstance(get_referent, type | type(gc))
            ):
                found[id(get_referent)] = get_referent
                left.append(get_referent)
    return len(found)
