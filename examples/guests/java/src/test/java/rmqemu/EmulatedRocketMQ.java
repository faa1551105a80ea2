package rmqemu;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test class with an emulated cluster: it is started before the first test, healed after each, and ended after the
 * last. The class has a static field of type {@link Cluster}, which is set before the first test.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(EmulatedRocketMQExtension.class)
public @interface EmulatedRocketMQ {
    /** A scenario file, or the name of a scenario of the package: `rmqemu examples`. */
    String scenario() default "guests";

    /** Names of programs, each with an address of its own, for faults of its links. */
    String[] guests() default {};
}
