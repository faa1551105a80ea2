package shim;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs a test class next to the cluster that the environment names, and prints a line for each test:
 * `RESULT class method passed|failed|ignored milliseconds why`.
 */
public final class RunTests {
    private RunTests() {
    }

    public static void main(String[] words) throws ClassNotFoundException {
        System.setProperty("namesrvAddr", System.getenv("NAMESRV_ADDR").split(";")[0]);
        System.setProperty("endPoint", System.getenv("RMQEMU_ENDPOINTS").split(";")[0]);
        Class<?> tests = Class.forName(words[0], false, RunTests.class.getClassLoader());
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request().selectors(selectClass(tests)).build();
        LauncherFactory.create().execute(request, new Report(tests.getSimpleName()));
        System.exit(0); // clients leave threads behind
    }

    private static final class Report implements TestExecutionListener {
        private final String tests;
        private final Map<String, Long> begins = new ConcurrentHashMap<>();

        private Report(String tests) {
            this.tests = tests;
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            begins.put(test.getUniqueId(), System.nanoTime());
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            print(test, "ignored", reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
            if (test.isTest() || !passed) { // a class fails before its first test, or after its last
                print(test, passed ? "passed" : "failed", result.getThrowable().map(RunTests::firstLine).orElse(""));
            }
        }

        private void print(TestIdentifier test, String result, String why) {
            String name = test.getLegacyReportingName().replaceAll("\\(.*\\)", "");
            long took = System.nanoTime() - begins.getOrDefault(test.getUniqueId(), System.nanoTime());
            System.out.printf("%nRESULT %s %s %s %d %s%n", tests, name, result, took / 1_000_000, why);
        }
    }

    private static String firstLine(Throwable failure) {
        failure.printStackTrace();
        return String.valueOf(failure).lines().findFirst().orElse("");
    }
}
