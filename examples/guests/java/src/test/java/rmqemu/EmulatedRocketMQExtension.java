package rmqemu;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** What {@link EmulatedRocketMQ} does. */
final class EmulatedRocketMQExtension implements BeforeAllCallback, AfterEachCallback {
    private static final Namespace NAMESPACE = Namespace.create(EmulatedRocketMQ.class);

    /** JUnit closes it with the test class, behind all that uses the cluster, such as Spring's context. */
    private record Running(Cluster cluster) implements CloseableResource {
        @Override
        public void close() {
            cluster.close();
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IllegalAccessException {
        Class<?> tests = context.getRequiredTestClass();
        EmulatedRocketMQ wanted = tests.getAnnotation(EmulatedRocketMQ.class);
        if (wanted == null) { // a nested class: it has the cluster of the class around it
            return;
        }
        List<Field> fields = Arrays.stream(tests.getDeclaredFields())
            .filter(field -> field.getType() == Cluster.class && Modifier.isStatic(field.getModifiers()))
            .toList();
        if (fields.size() != 1) {
            throw new ExtensionConfigurationException(
                tests.getName() + ": expected one static field of type Cluster, not " + fields.size());
        }
        Cluster cluster = Cluster.launch(wanted.scenario(), wanted.guests());
        context.getStore(NAMESPACE).put(Running.class, new Running(cluster));
        fields.get(0).setAccessible(true);
        fields.get(0).set(null, cluster);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Cluster cluster = context.getStore(NAMESPACE).get(Running.class, Running.class).cluster();
        cluster.heal();
        if (context.getExecutionException().isPresent()) {
            cluster.keepRun();
            System.err.println("what happened: rmqemu analyze " + cluster.run());
        }
    }
}
