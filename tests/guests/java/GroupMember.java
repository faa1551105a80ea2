import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;

/** A member of a group, from its start until its input ends: `java GroupMember NAMESRV GROUP TOPIC [orderly]`. */
public class GroupMember {
    public static void main(String[] words) {
        try {
            live(words);
            Runtime.getRuntime().halt(0);
        } catch (Exception failed) {
            failed.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static void live(String[] words) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words[1]);
        consumer.setNamesrvAddr(words[0]);
        consumer.subscribe(words[2], "*");
        if (words.length > 3) {
            consumer.registerMessageListener(
                (MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUCCESS);
        } else {
            consumer.registerMessageListener(
                (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        }
        consumer.start();
        System.out.println("started");
        while (System.in.read() >= 0) {
            // It lives as long as somebody holds its input open.
        }
        consumer.shutdown();
    }
}
