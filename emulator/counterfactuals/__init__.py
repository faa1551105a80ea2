"""What would have been: a run repeated without a disturbance, with one alone, or with other options.

A cause that the trace names is confirmed, or refuted, by leaving it out; what may end a harm is tried before anybody
recommends it. May import `campaign` and what is below it.
"""
