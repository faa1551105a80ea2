import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/**
 * A producer that is told by lines what to do, and answers each with one line:
 *
 *   first ADDRESS                    -> wall clock in ms when its first message was accepted
 *   send ADDRESS THREADS WARM_S RUN_S BODY_BYTES BATCH
 *                                    -> how long each send of RUN_S took, in us, sorted, behind their number;
 *                                       each sends a batch of so many messages
 */
public final class SyncProducer {
    private static final String TOPIC = "bench";
    private static final int FIRST_BODY_BYTES = 100;
    private static final int FIRST_SENDS = 1 << 16;
    private static final long PATIENCE_NS = 90_000_000_000L;

    public static void main(String[] arguments) {
        try {
            serve();
            System.exit(0);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1); // the client's threads would keep it alive
        }
    }

    private static void serve() throws Exception {
        loadClasses();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("first")) {
                System.out.println(first(words[1]));
            } else {
                Work work = new Work(Integer.parseInt(words[5]), Integer.parseInt(words[6]));
                send(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]), Long.parseLong(words[4]), work);
            }
        }
    }

    /** Nobody is there: what a first send loads is loaded, so that only the cluster is waited for. */
    private static void loadClasses() throws Exception {
        DefaultMQProducer producer = started("nobody", "127.0.0.1:1");
        try {
            producer.send(new Message(TOPIC, body(FIRST_BODY_BYTES)));
        } catch (Exception expected) {
            producer.shutdown();
        }
    }

    private static long first(String address) throws Exception {
        DefaultMQProducer producer = started("first", address);
        sendUntilAccepted(producer);
        long at = System.currentTimeMillis();
        producer.shutdown();
        return at;
    }

    /** What one send takes with it. */
    private record Work(int bodyBytes, int batch) {
        void sendBy(DefaultMQProducer producer) throws Exception {
            byte[] body = body(bodyBytes);
            if (batch == 1) {
                producer.send(new Message(TOPIC, body));
                return;
            }
            Message[] messages = new Message[batch];
            Arrays.setAll(messages, i -> new Message(TOPIC, body));
            producer.send(List.of(messages));
        }
    }

    private static byte[] body(int bytes) {
        byte[] body = new byte[bytes];
        Arrays.fill(body, (byte) 'x');
        return body;
    }

    private static void send(String address, int threads, long warmS, long runS, Work work) throws Exception {
        DefaultMQProducer producer = started("sends", address);
        sendUntilAccepted(producer);
        long begin = System.nanoTime() + warmS * 1_000_000_000L;
        long end = begin + runS * 1_000_000_000L;
        long[][] found = new long[threads][];
        Throwable[] failed = new Throwable[1];
        CountDownLatch running = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            int number = i;
            new Thread(() -> {
                try {
                    found[number] = sendUntil(producer, begin, end, work);
                } catch (Throwable e) { // an OutOfMemoryError, too: nobody else would be told
                    failed[0] = e;
                } finally {
                    running.countDown();
                }
            }).start();
        }
        running.await();
        if (failed[0] != null) {
            throw new IllegalStateException("a thread that sends has ended", failed[0]);
        }
        long[] all = Arrays.stream(found).flatMapToLong(Arrays::stream).sorted().toArray();
        StringBuilder line = new StringBuilder().append(all.length);
        for (long us : all) {
            line.append(' ').append(us);
        }
        System.out.println(line);
        producer.shutdown();
    }

    private static long[] sendUntil(DefaultMQProducer producer, long begin, long end, Work work) throws Exception {
        long[] took = new long[FIRST_SENDS];
        int count = 0;
        for (long before = System.nanoTime(); before < end; before = System.nanoTime()) {
            work.sendBy(producer);
            if (before >= begin) {
                if (count == took.length) {
                    took = Arrays.copyOf(took, 2 * count);
                }
                took[count++] = (System.nanoTime() - before) / 1_000;
            }
        }
        return Arrays.copyOf(took, count);
    }

    private static void sendUntilAccepted(DefaultMQProducer producer) throws Exception {
        long latest = System.nanoTime() + PATIENCE_NS;
        while (true) {
            try {
                producer.send(new Message(TOPIC, body(FIRST_BODY_BYTES)));
                return;
            } catch (Exception notYet) {
                if (System.nanoTime() > latest) {
                    throw notYet;
                }
                Thread.sleep(20);
            }
        }
    }

    private static DefaultMQProducer started(String group, String address) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(address);
        producer.setInstanceName(group + System.nanoTime());
        producer.start();
        return producer;
    }
}
