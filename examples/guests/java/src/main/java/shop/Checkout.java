package shop;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.core.RocketMQLocalRequestCallback;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.apache.rocketmq.spring.support.RocketMQHeaders;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.stereotype.Component;

/** Sends in each way in turn, each way from a thread of its own, so that none waits for another. */
@Component
class Checkout {
    private static final int TIMEOUT_MS = 3_000;
    private static final int FIVE_SECONDS = 2; // the delay level
    private static final int CUSTOMERS = 4;

    private final RocketMQTemplate rocketmq;
    private final Ledger ledger;
    private final int everyMs;
    private final ScheduledExecutorService tills = Executors.newScheduledThreadPool(Kind.values().length);

    Checkout(RocketMQTemplate rocketmq, Ledger ledger, @Value("${shop.every-ms:500}") int everyMs) {
        this.rocketmq = rocketmq;
        this.ledger = ledger;
        this.everyMs = everyMs;
    }

    void open() {
        for (Kind kind : Kind.values()) {
            tills.scheduleWithFixedDelay(() -> sell(kind), 0, everyMs, TimeUnit.MILLISECONDS);
        }
    }

    void close() throws InterruptedException {
        tills.shutdown();
        tills.awaitTermination(1, TimeUnit.MINUTES);
    }

    private void sell(Kind kind) {
        String id = ledger.sent(kind);
        try {
            send(kind, id, MessageBuilder.withPayload(id).setHeader(RocketMQHeaders.KEYS, id).build());
        } catch (RuntimeException error) {
            ledger.failed(id);
        }
    }

    private void send(Kind kind, String id, Message<String> message) {
        String orders = "ShopOrders:" + kind.tag();
        switch (kind) {
            case SYNC, TAGGED -> confirm(id, rocketmq.syncSend(orders, message, TIMEOUT_MS));
            case ASYNC -> rocketmq.asyncSend(orders, message, new Confirmation(id), TIMEOUT_MS);
            case ONE_WAY -> rocketmq.sendOneWay(orders, message); // nobody will ever acknowledge it
            case DELAYED -> confirm(id, rocketmq.syncSend(orders, message, TIMEOUT_MS, FIVE_SECONDS));
            case ORDERED -> confirm(id, rocketmq.syncSendOrderly("ShopParcels", message, customer(id), TIMEOUT_MS));
            case TRANSACTIONAL -> confirm(id, rocketmq.sendMessageInTransaction(orders, message, null));
            case REQUEST -> rocketmq.sendAndReceive("ShopPrices", message, new Answer(id), TIMEOUT_MS);
        }
    }

    /** Who gets the parcels of each number modulo four, in order. */
    static String customer(String id) {
        return "customer-" + Ledger.number(id) % CUSTOMERS;
    }

    private void confirm(String id, SendResult result) {
        boolean committed = !(result instanceof TransactionSendResult transaction)
            || transaction.getLocalTransactionState() == LocalTransactionState.COMMIT_MESSAGE;
        if (committed && result.getSendStatus() == SendStatus.SEND_OK) {
            ledger.acknowledged(id);
        } else {
            ledger.failed(id);
        }
    }

    /** What becomes of an asynchronous send. */
    private final class Confirmation implements SendCallback {
        private final String id;

        private Confirmation(String id) {
            this.id = id;
        }

        @Override
        public void onSuccess(SendResult result) {
            confirm(id, result);
        }

        @Override
        public void onException(Throwable error) {
            ledger.failed(id);
        }
    }

    /**
     * The reply to a request; a request is acknowledged when its reply is there.
     *
     * <p>Java clients 5.3.1 to 5.3.3 call back twice: with null when the request is sent, then with the reply. Spring hands
     * null on to a callback for MessageExt, and fails with one for any other type. And `sendAndReceive` without a callback
     * times out as soon as the request is sent, so with these clients there is no other way to get a reply.
     */
    private final class Answer implements RocketMQLocalRequestCallback<MessageExt> {
        private final String id;

        private Answer(String id) {
            this.id = id;
        }

        @Override
        public void onSuccess(MessageExt reply) {
            if (reply != null) {
                ledger.acknowledged(id);
            }
        }

        @Override
        public void onException(Throwable error) {
            ledger.failed(id);
        }
    }
}
