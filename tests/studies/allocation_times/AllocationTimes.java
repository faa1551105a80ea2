import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.message.MessageQueue;

/** Prints what allocations take: CPU time in microseconds, of the strategy and with what a client does around it. */
public class AllocationTimes {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int[][] CALLS = {{0, 1}, {1, 10}, {10, 60}, {2_000, 4_000}};

    /** Arguments: class of the strategy, number of queues, number of members, which come and go by turns. */
    public static void main(String[] arguments) throws Exception {
        int queues = Integer.parseInt(arguments[1]);
        int members = Integer.parseInt(arguments[2]);
        Set<MessageQueue> all = queues(queues);
        List<String> everyone = members(members);
        String asking = everyone.get(members / 2);
        List<String> withoutOne = new ArrayList<>(everyone);
        withoutOne.remove(everyone.get(members / 2 == 0 ? members - 1 : 0));
        AllocateMessageQueueStrategy strategy =
            (AllocateMessageQueueStrategy) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        // A client has logged before its first rebalance, and loads that of Averagely with the consumer.
        new AllocateMessageQueueAveragely().allocate("g", "x", new ArrayList<>(queues(1)), Arrays.asList("x"));
        double[][] taken = new double[CALLS[CALLS.length - 1][1]][];
        for (int call = 0; call < taken.length; call++) {
            taken[call] = allocate(strategy, all, new ArrayList<>(call % 2 == 0 ? everyone : withoutOne), asking);
        }
        StringBuilder line = new StringBuilder(String.join(" ", arguments));
        for (int[] calls : CALLS) {
            line.append(String.format("  %.1f/%.1f", median(taken, calls, 0), median(taken, calls, 1)));
        }
        System.out.println(line);
    }

    /** What a client does between the list of members and the set of its new queues. */
    private static double[] allocate(
            AllocateMessageQueueStrategy strategy, Set<MessageQueue> all, List<String> members, String asking) {
        long begin = THREADS.getCurrentThreadCpuTime();
        List<MessageQueue> sorted = new ArrayList<>(all);
        Collections.sort(sorted);
        Collections.sort(members);
        long beginOfStrategy = THREADS.getCurrentThreadCpuTime();
        List<MessageQueue> mine = strategy.allocate("g", asking, sorted, members);
        long endOfStrategy = THREADS.getCurrentThreadCpuTime();
        Set<MessageQueue> share = new HashSet<>(mine);
        long end = THREADS.getCurrentThreadCpuTime();
        if (share.size() > all.size()) {
            throw new IllegalStateException();
        }
        return new double[] {(endOfStrategy - beginOfStrategy) / 1e3, (end - begin) / 1e3};
    }

    private static double median(double[][] taken, int[] calls, int part) {
        double[] found = Arrays.stream(taken, calls[0], calls[1]).mapToDouble(times -> times[part]).sorted().toArray();
        return found[found.length / 2];
    }

    private static Set<MessageQueue> queues(int number) {
        Set<MessageQueue> found = new HashSet<>();
        for (int i = 0; i < number; i++) {
            found.add(new MessageQueue("orders", "broker-" + i / 8, i % 8));
        }
        return found;
    }

    private static List<String> members(int number) {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            found.add("10.4.17." + (i + 2) + "@" + (20_000 + 37 * i) + "#" + (1_234_567_890_123L + 7_919L * i));
        }
        Collections.shuffle(found, new Random(11));
        return found;
    }
}
