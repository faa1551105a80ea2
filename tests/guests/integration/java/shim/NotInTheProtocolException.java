package shim;

import java.lang.reflect.Method;

/** A test calls a method of a server's own classes, and no request and no verb does the same. */
public final class NotInTheProtocolException extends RuntimeException {
    NotInTheProtocolException(Class<?> type, Method method) {
        super("no request and no verb gives " + type.getSimpleName() + "." + method.getName());
    }
}
