import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs mqadmin's subcommands one after the other in one JVM, and prints what each of them prints. */
public class Mqadmin {
    public static void main(String[] files) throws Exception {
        PrintStream out = System.out;
        for (String line : Files.readAllLines(Path.of(files[0]))) {
            ByteArrayOutputStream told = new ByteArrayOutputStream();
            PrintStream into = new PrintStream(told, true, StandardCharsets.UTF_8);
            System.setOut(into);
            System.setErr(into);
            CompletableFuture<Void> done =
                CompletableFuture.runAsync(() -> MQAdminStartup.main0(line.split(" "), null));
            try {
                done.get(20, TimeUnit.SECONDS);
            } catch (TimeoutException running) {
                told.write("(still runs)\n".getBytes(StandardCharsets.UTF_8));
            } catch (Exception failed) {
                failed.printStackTrace(into);
            }
            out.println("> " + line);
            out.println(told.toString(StandardCharsets.UTF_8));
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
