package shop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * A shop that sends in every way, and counts what became of each message.
 *
 * <p>{@code NAMESRV_ADDR=HOST:PORT java -jar shop.jar}, or {@code --rocketmq.name-server=HOST:PORT}: it sends until its
 * input ends. Each line that it reads begins a step with that name; at the end it prints a table of all steps.
 */
@SpringBootApplication
public class Shop {
    public static void main(String[] arguments) throws IOException, InterruptedException {
        try (ConfigurableApplicationContext context = SpringApplication.run(Shop.class, arguments)) {
            Ledger ledger = context.getBean(Ledger.class);
            Checkout checkout = context.getBean(Checkout.class);
            checkout.open();
            System.out.println("open");
            var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String step = input.readLine(); step != null; step = input.readLine()) {
                ledger.begin(step);
            }
            checkout.close();
            ledger.settle();
            ledger.table().forEach(System.out::println);
        }
        System.exit(0); // RocketMQ's clients leave threads
    }
}
