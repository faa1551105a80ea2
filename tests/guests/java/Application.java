import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/** An application that sends, or consumes, until it is killed; a line for each message. -Dkey=ACCESS:SECRET signs. */
public class Application {
    public static void main(String[] words) throws Exception {
        String role = words[0], namesrvAddr = words[1], topic = words[2];
        if (role.equals("produce")) {
            produce(namesrvAddr, topic, Integer.parseInt(words[3]), Integer.parseInt(words[4]));
        } else {
            consume(namesrvAddr, topic, Integer.parseInt(words[3]));
        }
    }

    private static RPCHook hook() {
        String[] keys = System.getProperty("key", "").split(":");
        return keys.length < 2 ? null : new AclClientRPCHook(new SessionCredentials(keys[0], keys[1]));
    }

    private static void produce(String namesrvAddr, String topic, int perSecond, int routeMs) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("shop", hook());
        producer.setNamesrvAddr(namesrvAddr);
        producer.setPollNameServerInterval(routeMs);
        producer.start();
        long begunNs = System.nanoTime();
        for (int number = 0; ; number++) {
            long waitNs = begunNs + number * 1_000_000_000L / perSecond - System.nanoTime();
            Thread.sleep(Math.max(0, waitNs / 1_000_000));
            try {
                byte[] body = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
                SendResult result = producer.send(new Message(topic, body));
                System.out.println("sent " + result.getMessageQueue().getBrokerName() + " " + result.getSendStatus());
            } catch (MQClientException error) {
                System.out.println("failed " + error.getResponseCode() + " " + error.getErrorMessage());
                if (error.getCause() instanceof MQBrokerException) {
                    MQBrokerException cause = (MQBrokerException) error.getCause();
                    System.out.println("because " + cause.getResponseCode() + " " + cause.getErrorMessage());
                }
            } catch (Exception error) {
                System.out.println("failed " + error.getMessage());
            }
        }
    }

    private static void consume(String namesrvAddr, String topic, int heartbeatMs) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("billing", hook());
        consumer.setNamesrvAddr(namesrvAddr);
        consumer.setHeartbeatBrokerInterval(heartbeatMs);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            StringBuilder lines = new StringBuilder();
            for (MessageExt message : messages) {
                lines.append("consumed ").append(message.getBrokerName()).append(' ').append(message.getQueueId());
                lines.append(' ').append(message.getQueueOffset()).append(' ').append(System.currentTimeMillis());
                lines.append('\n');
            }
            System.out.print(lines);
            System.out.flush();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("started");
        Thread.currentThread().join();
    }
}
