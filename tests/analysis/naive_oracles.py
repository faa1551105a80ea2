"""The oracles once more, by brute force: ask at every instant, then glue neighbours together."""

ENDS = ("stopped", "crashed", "killed", "powered_off")


class NaiveRun:
    """Answers questions about one hand-made trace at any instant, by reading all its rows."""

    def __init__(self, trace, end_ns):
        self.end_ns = end_ns
        self.beliefs = trace.rows["beliefs"]
        self.ownership = trace.rows["ownership"]
        self.life = trace.rows["lifecycle"]
        self.fault_rows = trace.rows["faults"]
        every = (row[1] for rows in (self.beliefs, self.ownership, self.life) for row in rows)
        self.instants = sorted({t for t in every if t < end_ns})

    def ended(self, node, incarnation, by_ns, before_seq=None):
        return any(
            row[1] <= by_ns and row[2] == node and row[4] == incarnation and row[5] in ENDS
            for row in self.life
            if before_seq is None or row[0] < before_seq
        )

    def lives(self, row):
        """Whether the process that recorded a row had not ended before."""
        return not self.ended(row[2], row[4], row[1], row[0])

    def intervals(self, holds_at, level_at=lambda t: 0):
        """(start, end, highest level, open) of each maximal interval in which holds_at is true."""
        found = []
        for t, until in zip(self.instants, [*self.instants[1:], self.end_ns], strict=True):
            if not holds_at(t):
                continue
            if found and found[-1][1] == t:
                start, _, level, _ = found.pop()
                found.append((start, until, max(level, level_at(t)), until == self.end_ns))
            else:
                found.append((t, until, level_at(t), until == self.end_ns))
        return found

    def held(self, kind, role, subject, t):
        """(node, incarnation) -> value_hash, of who holds something at t."""
        last = {}
        for _, t_ns, node, row_role, incarnation, row_kind, row_subject, _, value_hash, _, _ in self.beliefs:
            if t_ns <= t and (row_kind, row_role, row_subject) == (kind, role, subject):
                last[node, incarnation] = value_hash
        return {holder: value for holder, value in last.items() if value and not self.ended(*holder, t)}

    def view(self, kind="view"):
        found = []
        for role, subject in sorted({(row[3], row[6]) for row in self.beliefs if row[5] == kind}):

            def views(t, role=role, subject=subject):
                return len(set(self.held(kind, role, subject, t).values()))

            for start, end, maximum, is_open in self.intervals(lambda t, views=views: views(t) > 1, views):
                found.append((kind, role, subject, start, end, maximum, is_open))
        return found

    def holders(self, kind, role, subject, start, end):
        """Longest constellation in an interval: hash -> sorted names, and how long it lasted."""
        spans = []
        inside = [t for t in self.instants if start <= t < end]
        for t, until in zip(inside, [*inside[1:], end], strict=True):
            held = self.held(kind, role, subject, t)
            if spans and spans[-1][0] == held:
                spans[-1][1] += until - t
            else:
                spans.append([held, until - t])
        best, best_ns = max(spans, key=lambda span: span[1])
        nodes = {h: sorted(n for (n, _), held in best.items() if held == h) for h in sorted(set(best.values()))}
        return nodes, best_ns

    def owners(self, queue, t):
        last = {}
        for _, t_ns, node, _, incarnation, event, *key, _, _ in self.ownership:
            if t_ns <= t and tuple(key) == queue and event in ("acquired", "dropped"):
                last[node, incarnation] = event
        return [h for h, event in last.items() if event == "acquired" and not self.ended(*h, t)]

    def queues(self):
        return sorted({tuple(row[6:10]) for row in self.ownership})

    def is_awake(self, node, incarnation, t):
        last = "resumed"
        for _, t_ns, client, _, number, event, *_ in self.life:
            if t_ns <= t and (client, number) == (node, incarnation) and event in ("suspended", "resumed"):
                last = event
        return last == "resumed"

    def awake_ns(self, queue, start, end):
        """How long at least two owners were awake."""
        inside = [t for t in self.instants if start <= t < end]
        return sum(
            until - t
            for t, until in zip(inside, [*inside[1:], end], strict=True)
            if sum(self.is_awake(*owner, t) for owner in self.owners(queue, t)) > 1
        )

    def overlap(self):
        found = []
        for queue in self.queues():

            def count(t, queue=queue):
                return len(self.owners(queue, t))

            for start, end, maximum, is_open in self.intervals(lambda t, count=count: count(t) > 1, count):
                inside = [t for t in self.instants if start <= t < end]
                names = sorted({node for t in inside for node, _ in self.owners(queue, t)})
                found.append((*queue, start, end, maximum, names, is_open, self.awake_ns(queue, start, end)))
        return found

    def alive(self, group, t):
        for _, t_ns, node, role, incarnation, event, detail, _ in self.life:
            named = event in ("started", "ready") and group in [name.strip() for name in detail.split(",")]
            if t_ns <= t and role == "consumer" and named and not self.ended(node, incarnation, t):
                return True
        return False

    def orphan(self):
        found = []
        for queue in self.queues():
            acquired = [
                row[1]
                for row in self.ownership
                if tuple(row[6:10]) == queue and row[5] == "acquired" and not self.ended(row[2], row[4], row[1], row[0])
            ]

            def lonely(t, queue=queue, acquired=acquired):
                return bool(acquired) and min(acquired) <= t and not self.owners(queue, t) and self.alive(queue[0], t)

            found += [(*queue, start, end, is_open) for start, end, _, is_open in self.intervals(lonely)]
        return found

    def divergent(self):
        """layer -> [(start, end, open)]."""
        queues = [(r[4], r[5], r[8]) for r in self.overlap()] + [(r[4], r[5], r[6]) for r in self.orphan()]
        return {"views": [(r[3], r[4], r[6]) for r in self.view()], "ownership": queues}

    def agreed_ns(self):
        views = [row[1] for row in self.beliefs if row[5] == "view" and self.lives(row)]
        owned = [row[1] for row in self.ownership if row[5] == "acquired" and self.lives(row)]
        if not views or not owned:
            return None
        begun = max(min(views), min(owned))
        every = [i for intervals in self.divergent().values() for i in intervals]
        for t in sorted({begun, *(end for _, end, _ in every if end > begun)}):
            if not any(start <= t < end or (is_open and start <= t) for start, end, is_open in every):
                return t
        return None

    def disturbances(self):
        agreed = self.agreed_ns()
        counted = ("started", "stopping", "crashed", "killed", "powered_off", "suspended", "resumed")
        rows = [(r[0], r[1], f"{r[4]} {r[5]} {r[2]}s") for r in self.fault_rows]
        if agreed is not None:
            rows += [(r[0], r[1], f"{r[2]} {r[5]}") for r in self.life if r[5] in counted and r[1] > agreed]
        by_time = {}
        for _, t, subject in sorted(rows):
            by_time.setdefault(t, []).append(subject)
        return sorted(by_time.items())

    def agreement(self):
        found = []
        instants = self.disturbances()
        for layer, intervals in self.divergent().items():
            for number, (t, subject) in enumerate(instants):
                is_last = number == len(instants) - 1
                until = self.end_ns if is_last else instants[number + 1][0]
                concerned = [i for i in intervals if i[0] < until and i[1] > t]
                end = max((i[1] for i in concerned), default=t)
                never = any(i[2] for i in concerned) or (not is_last and end >= until and bool(concerned))
                found.append((layer, t, until, subject, min(end, until) - t, never))
        return found

    def phases(self):
        instants = [(t, description) for t, description in self.disturbances() if t < self.end_ns]
        if not instants or instants[0][0] > 0:
            instants.insert(0, (0, []))
        measures = (
            [(r[3], r[4]) for r in self.view()],
            [(r[4], r[5]) for r in self.overlap()],
            [(r[4], r[5]) for r in self.orphan()],
        )
        found = []
        for (start, subject), (end, _) in zip(instants, [*instants[1:], (self.end_ns, [])], strict=True):
            totals = [sum(max(0, min(e, end) - max(s, start)) for s, e in m) for m in measures]
            found.append((start, end, subject, *totals))
        return found
