package shim;

import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;
import org.junit.runners.BlockJUnit4ClassRunner;

/**
 * Runs test classes, those that RocketMQ ignores included, and prints a line for each test:
 * `RESULT class method passed|failed|ignored milliseconds why`.
 */
public final class Run {
    private Run() {
    }

    public static void main(String[] classes) throws Exception {
        JUnitCore core = new JUnitCore();
        core.addListener(new Report());
        for (String name : classes) {
            Class<?> tests = Class.forName(name);
            core.run(tests.isAnnotationPresent(org.junit.runner.RunWith.class)
                ? Request.aClass(tests)
                : Request.runner(new BlockJUnit4ClassRunner(tests)));
        }
        System.exit(0); // clients leave threads behind
    }

    private static final class Report extends RunListener {
        private long begin;
        private Failure failure;

        @Override
        public void testStarted(Description test) {
            begin = System.nanoTime();
            failure = null;
        }

        @Override
        public void testFailure(Failure failed) {
            failure = failed;
            failed.getException().printStackTrace();
            if (failed.getDescription().getMethodName() == null) { // before the first test, or after the last
                print(failed.getDescription(), "failed");
            }
        }

        @Override
        public void testAssumptionFailure(Failure failed) {
            failure = failed;
        }

        @Override
        public void testFinished(Description test) {
            print(test, failure == null ? "passed" : "failed");
        }

        @Override
        public void testIgnored(Description test) {
            failure = null;
            begin = System.nanoTime();
            print(test, "ignored");
        }

        private void print(Description test, String result) {
            String why = failure == null ? "" : String.valueOf(failure.getException()).lines().findFirst().orElse("");
            System.out.printf("%nRESULT %s %s %s %d %s%n", test.getTestClass().getSimpleName(), test.getMethodName(),
                result, (System.nanoTime() - begin) / 1_000_000, why);
        }
    }
}
