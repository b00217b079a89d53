// Runs Java clients and Kafka's command line tools for tests: JSON requests on stdin, JSON responses on stdout, one per line.
//
// One JVM serves a test session, because starting one takes a second. It calls the tools' `main` methods, catches their
// calls to exit, and returns their output.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

public final class Worker {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Runnable> HOOKS = new ArrayList<>(); // shutdown hooks of the running tool
    private static final Duration WAIT = Duration.ofSeconds(15);

    /** Status of the running tool's first call to exit; null before it. */
    private static Integer exitStatus;

    /** Replaces a tool's call to exit, so that the JVM keeps running. */
    private static final class Exited extends RuntimeException {
        Exited() {
            super("exit", null, false, false);
        }
    }

    /** Some tools catch the exception and exit again: the first status counts, and output about the exception is dropped. */
    private static void exit(int status) {
        if (exitStatus == null) {
            exitStatus = status;
            System.err.flush();
            System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        }
        throw new Exited();
    }

    public static void main(String[] args) throws Exception {
        PrintStream responses = System.out;
        System.setOut(System.err); // stdout is only for responses
        Exit.setExitProcedure((status, message) -> { exit(status); });
        Exit.setHaltProcedure((status, message) -> { exit(status); });
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode response = JSON.createObjectNode();
            try {
                response.set("ok", serve(JSON.readTree(line)));
            } catch (Throwable failure) {
                Throwable cause = failure instanceof ExecutionException && failure.getCause() != null ? failure.getCause() : failure;
                response.put("error", cause.getClass().getName() + ": " + cause.getMessage());
            }
            responses.println(JSON.writeValueAsString(response));
            responses.flush();
        }
    }

    private static JsonNode serve(JsonNode request) throws Exception {
        String operation = request.get("op").asText();
        switch (operation) {
            case "ping": return JSON.createObjectNode().put("pid", ProcessHandle.current().pid());
            case "produce": return produce(request);
            case "consume": return consume(request);
            case "offsets": return offsets(request);
            case "partitions": return partitions(request);
            case "tool": return tool(request);
            default: throw new IllegalArgumentException("no operation is named " + operation);
        }
    }

    private static Properties settings(JsonNode request) {
        Properties settings = new Properties();
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        request.get("config").fields().forEachRemaining(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        return settings;
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] value) {
        return value == null ? null : Base64.getEncoder().encodeToString(value);
    }

    private static JsonNode produce(JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        ArrayNode offsets = JSON.createArrayNode();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings(request))) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : request.get("records")) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : record.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                Long timestamp = record.get("timestamp").isNull() ? null : record.get("timestamp").asLong();
                Integer partition = record.get("partition").isNull() ? null : record.get("partition").asInt();
                sent.add(producer.send(new ProducerRecord<>(topic, partition, timestamp, bytes(record.get("key")), bytes(record.get("value")), headers)));
            }
            producer.flush();
            for (Future<RecordMetadata> future : sent) {
                RecordMetadata metadata = future.get();
                offsets.add(metadata.hasOffset() ? metadata.offset() : -1);
            }
        }
        return offsets;
    }

    private static JsonNode consume(JsonNode request) {
        String topic = request.get("topic").asText();
        Map<Integer, Long> ends = new HashMap<>();
        ArrayNode records = JSON.createArrayNode();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(request))) {
            List<TopicPartition> assigned = new ArrayList<>();
            request.get("start").fieldNames().forEachRemaining(name -> assigned.add(new TopicPartition(topic, Integer.parseInt(name))));
            consumer.assign(assigned);
            for (TopicPartition partition : assigned) {
                consumer.seek(partition, request.get("start").get(String.valueOf(partition.partition())).asLong());
                ends.put(partition.partition(), request.get("end").get(String.valueOf(partition.partition())).asLong());
            }
            long deadline = System.nanoTime() + WAIT.toNanos();
            while (assigned.stream().anyMatch(p -> consumer.position(p) < ends.get(p.partition()))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("only " + records.size() + " records came in time");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (record.offset() < ends.get(record.partition())) {
                        records.add(describe(record));
                    }
                }
            }
        }
        return records;
    }

    private static ObjectNode describe(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("partition", record.partition());
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("timestamp_type", record.timestampType().name);
        node.put("key", text(record.key()));
        node.put("value", text(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
        return node;
    }

    private static JsonNode offsets(JsonNode request) {
        String topic = request.get("topic").asText();
        List<TopicPartition> requested = new ArrayList<>();
        request.get("partitions").forEach(partition -> requested.add(new TopicPartition(topic, partition.asInt())));
        ObjectNode response = JSON.createObjectNode();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(request))) {
            JsonNode at = request.get("at");
            if (at.isTextual()) {
                Map<TopicPartition, Long> found = at.asText().equals("earliest") ? consumer.beginningOffsets(requested) : consumer.endOffsets(requested);
                found.forEach((partition, offset) -> response.put(String.valueOf(partition.partition()), offset));
            } else {
                Map<TopicPartition, Long> times = new HashMap<>();
                requested.forEach(partition -> times.put(partition, at.asLong()));
                consumer.offsetsForTimes(times).forEach((partition, found) ->
                    response.put(String.valueOf(partition.partition()), found == null ? null : (Long) found.offset()));
            }
        }
        return response;
    }

    private static JsonNode partitions(JsonNode request) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(request))) {
            // The metadata request that creates a topic gets its response before the topic exists.
            int count = 0;
            for (long deadline = System.nanoTime() + WAIT.toNanos(); count == 0 && System.nanoTime() < deadline; ) {
                count = consumer.partitionsFor(request.get("topic").asText()).size();
            }
            return JSON.createObjectNode().put("count", count);
        }
    }

    private static JsonNode tool(JsonNode request) throws Exception {
        List<String> arguments = new ArrayList<>();
        request.get("args").forEach(argument -> arguments.add(argument.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        InputStream stdin = System.in;
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        exitStatus = null;
        HOOKS.clear();
        try {
            System.setIn(new ByteArrayInputStream(bytes(request.get("stdin"))));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            try {
                Class.forName(request.get("class").asText()).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments.toArray(new String[0]));
            } catch (InvocationTargetException failure) {
                if (exitStatus == null) {
                    failure.getCause().printStackTrace(System.err);
                    exitStatus = 1;
                }
            }
            List.copyOf(HOOKS).forEach(Runnable::run); // the console producer flushes here
        } finally {
            System.out.flush();
            System.err.flush();
            System.setIn(stdin);
            System.setOut(stdout);
            System.setErr(stderr);
        }
        ObjectNode response = JSON.createObjectNode();
        response.put("status", exitStatus == null ? 0 : exitStatus);
        response.put("out", out.toString(StandardCharsets.UTF_8));
        response.put("err", err.toString(StandardCharsets.UTF_8));
        return response;
    }
}
