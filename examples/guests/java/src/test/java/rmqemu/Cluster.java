package rmqemu;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A live emulated cluster: a process `rmqemu up`, which ends with this one, however this one ends.
 *
 * <p>Every verb of the console can be said; `rmqemu verbs` lists them.
 */
public final class Cluster implements AutoCloseable {
    private static final String ADDRESS = "NAMESRV_ADDR";
    private static final String ENDPOINTS = "RMQEMU_ENDPOINTS";
    private static final String RUN = "RMQEMU_RUN";
    private static final String READY = "ready";
    /**
     * What runs beside the cluster, which ends with it: `cat` ends when its input does, and that is when {@link #close}
     * closes it or this process is gone, be it by SIGKILL.
     */
    private static final String BESIDE =
        "env | grep -e '^" + ADDRESS + "' -e '^" + ENDPOINTS + "' -e '^" + RUN + "='; echo " + READY + "; exec cat";
    private static final int ENDS_WITHIN_S = 20;

    private final Path runs;
    private final Process process;
    private final Map<String, String> told;
    private final ControlSocket control;
    private boolean keepsRun;

    private Cluster(Path runs, Process process, Map<String, String> told) {
        this.runs = runs;
        this.process = process;
        this.told = told;
        this.control = new ControlSocket(run().resolve("ctl.sock"));
    }

    /**
     * Start a cluster, and wait until its nodes agree.
     *
     * @param scenario a scenario file, or the name of a scenario of the package.
     * @param guests names of programs that will have an address of their own.
     * @throws ClusterException there is no `rmqemu`, or the scenario is bad; the text has the lines that it printed.
     */
    public static Cluster launch(String scenario, String... guests) {
        Path runs = folder();
        List<String> words = new ArrayList<>(List.of("rmqemu", "up", scenario, "--runs", runs.toString()));
        Stream.of(guests).forEach(guest -> Collections.addAll(words, "--guest", guest));
        Collections.addAll(words, "--exec", "sh", "-c", BESIDE);
        ProcessBuilder builder = new ProcessBuilder(words).redirectErrorStream(true);
        // those of a cluster around this one
        builder.environment().keySet().removeIf(name -> name.startsWith(ADDRESS) || name.startsWith(ENDPOINTS));
        Process process;
        try {
            process = builder.start();
        } catch (IOException error) {
            throw new ClusterException(
                "rmqemu cannot be run; is it on the PATH? pip install rocketmq-emulator (" + error.getMessage() + ")");
        }
        Cluster cluster = new Cluster(runs, process, untilReady(process));
        try {
            cluster.say("until", "agree", "within", "60s");
        } catch (RuntimeException error) {
            cluster.close();
            throw error;
        }
        return cluster;
    }

    /** A folder with a short path, so that the one of the control socket fits into a socket's address. */
    private static Path folder() {
        try {
            return Files.createTempDirectory("rmqemu-");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Map<String, String> untilReady(Process process) {
        Map<String, String> told = new HashMap<>();
        List<String> lines = new ArrayList<>();
        BufferedReader reader = process.inputReader();
        try {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (line.equals(READY)) {
                    return told;
                }
                lines.add(line);
                String[] parts = line.split("=", 2);
                told.put(parts[0], parts[parts.length - 1]);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        throw new ClusterException("rmqemu did not start:\n" + String.join("\n", lines));
    }

    /** The nameservers' addresses, for RocketMQ's clients: of the first named guest, if there are any. */
    public String namesrvAddr() {
        return told.get(ADDRESS);
    }

    /** The same for the program of a name. */
    public String namesrvAddr(String guest) {
        return told.get(ADDRESS + "_" + guest.replaceAll("[^A-Za-z0-9]", "_").toUpperCase());
    }

    /** The proxies' addresses, for clients of RocketMQ 5: of the first named guest, if there are any. */
    public String endpoints() {
        return told.get(ENDPOINTS);
    }

    /** The same for the program of a name. */
    public String endpoints(String guest) {
        return told.get(ENDPOINTS + "_" + guest.replaceAll("[^A-Za-z0-9]", "_").toUpperCase());
    }

    /** The directory with what the run leaves; it is removed with the cluster, unless {@link #keepRun} was called. */
    public Path run() {
        return Path.of(told.get(RUN));
    }

    /** Keep what the run leaves, for `rmqemu analyze`. */
    public void keepRun() {
        keepsRun = true;
    }

    /** End a process as SIGKILL does. */
    public void kill(String node) {
        say("kill", node);
    }

    /** Begin a new process with what the disk has. */
    public void start(String node) {
        say("start", node);
    }

    /** Stop a process as SIGSTOP does. */
    public void suspend(String node) {
        say("suspend", node);
    }

    /** Let a suspended process run on. */
    public void resume(String node) {
        say("resume", node);
    }

    /** Let no frame pass between two nodes. */
    public void cut(String one, String other) {
        say("cut", one, other);
    }

    /** Make a topic read only, on all brokers. */
    public void readOnly(String topic) {
        say("permission", "brokers", "4", "topic", topic);
    }

    /** End all faults. */
    public void heal() {
        say("heal", "all");
    }

    /**
     * Say any verb.
     *
     * @return the lines of its output.
     * @throws ClusterException the verb was refused, and nothing has changed; the text says why.
     */
    public List<String> say(String... words) {
        return control.ask(Stream.of(words)
            .map(word -> "'" + word.replace("'", "'\"'\"'") + "'")
            .collect(Collectors.joining(" ")));
    }

    /** End the cluster: faults heal, the trace is written, and no process is left. */
    @Override
    public void close() {
        end();
        if (!keepsRun) {
            remove(runs.toFile());
        }
    }

    private void end() {
        try {
            process.outputWriter().close();
            if (process.waitFor(ENDS_WITHIN_S, TimeUnit.SECONDS)) {
                return;
            }
        } catch (IOException error) {
            // it has ended already
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    private static void remove(File file) {
        File[] inside = file.listFiles();
        if (inside != null) {
            Stream.of(inside).forEach(Cluster::remove);
        }
        file.delete();
    }
}
