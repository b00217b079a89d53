// Two consumers of one group (see two_consumers.py). Prints the seconds of each run, one run per topic: the
// first one also loads classes.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class TwoConsumers {
    private static final long GIVE_UP_NS = 60_000_000_000L;
    private static final Map<Object, Integer> RECEIVED = new HashMap<>();

    @SafeVarargs
    private static void poll(BooleanSupplier isDone, KafkaConsumer<String, String>... consumers) {
        long deadline = System.nanoTime() + GIVE_UP_NS;
        while (!isDone.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("overdue");
            }
            for (var consumer : consumers) {
                RECEIVED.merge(consumer, consumer.poll(Duration.ofMillis(10)).count(), Integer::sum);
            }
        }
    }

    public static void main(String[] args) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", args[0], "auto.offset.reset", "earliest"));
        for (int i = 2; i < args.length; i++) {
            String[] setting = args[i].split("=");
            config.put(setting[0], setting[1]);
        }
        for (String topic : args[1].split(",")) {
            config.put("group.id", "group-of-" + topic);
            long started = System.nanoTime();
            run(config, topic);
            System.out.printf("%.3f%n", (System.nanoTime() - started) / 1e9);
        }
    }

    private static void run(Map<String, Object> config, String topic) {
        RECEIVED.clear();
        var first = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        first.subscribe(List.of(topic));
        poll(() -> first.assignment().size() == 2, first);
        var second = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        second.subscribe(List.of(topic));
        poll(() -> first.assignment().size() == 1 && second.assignment().size() == 1, first, second);
        Map<String, Object> common = Map.of("bootstrap.servers", config.get("bootstrap.servers"));
        try (var producer = new KafkaProducer<>(common, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, 0, "", "bread"));
            producer.send(new ProducerRecord<>(topic, 1, "", "bread"));
        }
        poll(() -> RECEIVED.getOrDefault(first, 0) > 0 && RECEIVED.getOrDefault(second, 0) > 0, first, second);
        second.close();
        poll(() -> first.assignment().size() == 2, first);
        first.close();
    }
}
