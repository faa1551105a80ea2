package shop;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.spring.annotation.RocketMQTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionListener;
import org.apache.rocketmq.spring.core.RocketMQLocalTransactionState;
import org.apache.rocketmq.spring.support.RocketMQHeaders;
import org.springframework.messaging.Message;

/** The local transaction: an order is paid, or was not when a broker asks later. */
@RocketMQTransactionListener
class Wallet implements RocketMQLocalTransactionListener {
    private final Set<Object> paid = ConcurrentHashMap.newKeySet();

    @Override
    public RocketMQLocalTransactionState executeLocalTransaction(Message message, Object argument) {
        paid.add(order(message));
        return RocketMQLocalTransactionState.COMMIT;
    }

    @Override
    public RocketMQLocalTransactionState checkLocalTransaction(Message message) {
        return paid.contains(order(message))
            ? RocketMQLocalTransactionState.COMMIT : RocketMQLocalTransactionState.ROLLBACK;
    }

    private static Object order(Message<?> message) {
        return message.getHeaders().get(RocketMQHeaders.PREFIX + RocketMQHeaders.KEYS);
    }
}
