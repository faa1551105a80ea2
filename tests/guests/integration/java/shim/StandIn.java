package shim;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.function.BiConsumer;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;

/**
 * Objects of RocketMQ's server classes, which integration tests call as if the servers ran in their JVM.
 *
 * <p>Nothing of these classes is executed: what a call does is a request to the emulated node, or a verb.
 */
final class StandIn {
    private StandIn() {
    }

    /**
     * An object of a server class.
     *
     * @param requests has a public method with the same name and parameters for each call that is emulated; any other
     *     call throws {@link NotInTheProtocolException}.
     */
    static <T> T of(Class<T> type, Object requests) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call -> ask(type, requests, call)));
    }

    private static Object ask(Class<?> type, Object requests, InvocationOnMock call) throws Throwable {
        Method method = call.getMethod();
        if (method.getName().equals("toString")) {
            return type.getSimpleName();
        }
        try {
            Method own = requests.getClass().getMethod(method.getName(), method.getParameterTypes());
            own.setAccessible(true);
            return own.invoke(requests, call.getArguments());
        } catch (NoSuchMethodException error) {
            throw new NotInTheProtocolException(type, method);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    /**
     * Options of a node: a setter changes the value here, and calls `change` with the option's name and its text.
     */
    @SuppressWarnings("unchecked")
    static <T> T options(T values, BiConsumer<String, String> change) {
        return (T) Mockito.mock((Class<T>) values.getClass(), Mockito.withSettings()
            .spiedInstance(values)
            .stubOnly()
            .defaultAnswer(call -> {
                Object result = call.callRealMethod();
                String name = call.getMethod().getName();
                if (name.startsWith("set") && call.getArguments().length == 1) {
                    change.accept(Character.toLowerCase(name.charAt(3)) + name.substring(4),
                        String.valueOf((Object) call.getArgument(0)));
                }
                return result;
            }));
    }
}
