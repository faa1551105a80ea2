package shop;

/** The ways in which the shop sends; the name in small letters is the tag of the message. */
enum Kind {
    SYNC, ASYNC, ONE_WAY, ORDERED, TRANSACTIONAL, DELAYED, REQUEST, TAGGED;

    String tag() {
        return name().toLowerCase();
    }
}
