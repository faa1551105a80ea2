package shop;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** What became of each message that the shop has sent. */
@Component
public class Ledger {
    private static final String FORMAT = "%-14s %-14s %6s %6s %6s %8s %6s %6s %6s";
    private static final int QUIET_S = 10; // so long nothing more may come before the count is final

    private final String run = Long.toString(System.currentTimeMillis(), 36); // a group may get messages of earlier runs
    private final int settleS;
    private final Map<String, Entry> entries = new LinkedHashMap<>();
    private final Map<Kind, Integer> counts = new EnumMap<>(Kind.class);
    private String step = "start";

    Ledger(@Value("${shop.settle-s:90}") int settleS) {
        this.settleS = settleS;
    }

    private static final class Entry {
        private final String step;
        private final Kind kind;
        private boolean acknowledged;
        private boolean failed;
        private boolean late;
        private int received;

        private Entry(String step, Kind kind) {
            this.step = step;
            this.kind = kind;
        }

        private boolean lost() {
            return acknowledged && received == 0;
        }
    }

    /** Begin a step: what is sent from now on counts for it. */
    public synchronized void begin(String name) {
        step = name;
    }

    /** A message is about to be sent; returns its id, which ends with the number of its kind. */
    synchronized String sent(Kind kind) {
        String id = run + "-" + kind.tag() + "-" + counts.merge(kind, 1, Integer::sum);
        entries.put(id, new Entry(step, kind));
        return id;
    }

    static int number(String id) {
        return Integer.parseInt(id.substring(id.lastIndexOf('-') + 1));
    }

    synchronized void acknowledged(String id) {
        entries.get(id).acknowledged = true;
    }

    synchronized void failed(String id) {
        entries.get(id).failed = true;
    }

    /** A listener has got it; returns whether for the first time. */
    synchronized boolean received(String id) {
        Entry entry = entries.get(id);
        return entry != null && ++entry.received == 1;
    }

    synchronized void late(String id) {
        entries.get(id).late = true;
    }

    /** Wait until all that was acknowledged is received, and then for what comes twice; in the end, give up. */
    public void settle() throws InterruptedException {
        for (int s = 0; s < settleS && lost() > 0; s++) {
            TimeUnit.SECONDS.sleep(1);
        }
        TimeUnit.SECONDS.sleep(QUIET_S);
    }

    /** How many messages were acknowledged, and have not been received. */
    public synchronized long lost() {
        return entries.values().stream().filter(Entry::lost).count();
    }

    /** How many messages were acknowledged, in a step. */
    public synchronized long acknowledgedIn(String name) {
        return entries.values().stream().filter(entry -> entry.step.equals(name) && entry.acknowledged).count();
    }

    /** A line for each step, then one for each way of sending. */
    public synchronized List<String> table() {
        List<String> lines = new ArrayList<>();
        lines.add(FORMAT.formatted("step", "way", "sent", "acked", "failed", "received", "lost", "twice", "late"));
        entries.values().stream().map(entry -> entry.step).distinct()
            .forEach(name -> lines.add(line(name, "all", entry -> entry.step.equals(name))));
        for (Kind kind : Kind.values()) {
            lines.add(line("all", kind.tag(), entry -> entry.kind == kind));
        }
        for (String name : entries.values().stream().map(entry -> entry.step).distinct().toList()) {
            for (Kind kind : Kind.values()) {
                lines.add(line(name, kind.tag(), entry -> entry.step.equals(name) && entry.kind == kind));
            }
        }
        return lines;
    }

    private String line(String name, String way, Predicate<Entry> of) {
        List<Entry> found = entries.values().stream().filter(of).toList();
        return FORMAT.formatted(
            name, way, found.size(),
            found.stream().filter(entry -> entry.acknowledged).count(),
            found.stream().filter(entry -> entry.failed).count(),
            found.stream().filter(entry -> entry.received > 0).count(),
            found.stream().filter(Entry::lost).count(),
            found.stream().mapToInt(entry -> Math.max(0, entry.received - 1)).sum(),
            found.stream().filter(entry -> entry.late).count());
    }
}
