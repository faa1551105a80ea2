package rmqemu;

/** The cluster cannot be started or reached, or refused a verb; the text is what `rmqemu` says. */
public final class ClusterException extends RuntimeException {
    ClusterException(String text) {
        super(text);
    }
}
