package shop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.spring.annotation.ConsumeMode;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQReplyListener;
import org.springframework.stereotype.Component;

/** Who receives; each listener is a group of its own. */
final class Listeners {
    private Listeners() {
    }

    /** Concurrent; several tags. */
    @Component
    @RocketMQMessageListener(
        topic = "ShopOrders", consumerGroup = "shop-billing",
        selectorExpression = "sync || async || one_way || transactional || delayed")
    record Billing(Ledger ledger) implements RocketMQListener<String> {
        @Override
        public void onMessage(String id) {
            ledger.received(id);
        }
    }

    /** Concurrent; one tag. */
    @Component
    @RocketMQMessageListener(topic = "ShopOrders", consumerGroup = "shop-courier", selectorExpression = "tagged")
    record Courier(Ledger ledger) implements RocketMQListener<String> {
        @Override
        public void onMessage(String id) {
            ledger.received(id);
        }
    }

    /** In order; it counts parcels that come for the first time after a later one of their customer. */
    @Component
    @RocketMQMessageListener(
        topic = "ShopParcels", consumerGroup = "shop-warehouse", consumeMode = ConsumeMode.ORDERLY)
    static class Warehouse implements RocketMQListener<String> {
        private final Ledger ledger;
        private final Map<String, Integer> latest = new ConcurrentHashMap<>();

        Warehouse(Ledger ledger) {
            this.ledger = ledger;
        }

        @Override
        public void onMessage(String id) {
            if (ledger.received(id)) {
                int number = Ledger.number(id);
                if (latest.merge(Checkout.customer(id), number, Math::max) > number) {
                    ledger.late(id);
                }
            }
        }
    }

    /** Replies. */
    @Component
    @RocketMQMessageListener(topic = "ShopPrices", consumerGroup = "shop-prices")
    record Prices(Ledger ledger) implements RocketMQReplyListener<String, String> {
        @Override
        public String onMessage(String id) {
            ledger.received(id);
            return "the price for " + id;
        }
    }
}
