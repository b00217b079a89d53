// kafkajs as a process for tests.
//
//     node client.js member BOOTSTRAP GROUP TOPIC ASSIGNOR SESSION_MS HEARTBEAT_MS
//     node client.js produce BOOTSTRAP TOPIC CODEC
//
// A member prints one JSON value per line: {"owns": [0, 1]} after a change, {"read": [partition, offset, ...]} before a commit,
// {"committed": true} after it; it leaves the group when stdin closes. A producer reads JSON lines {"partition", "key",
// "value", "headers"} with base64 values, and prints {"sent": {partition: first offset}}.

const readline = require("node:readline");
const { CompressionTypes, Kafka, logLevel } = require("kafkajs");

const emit = (event) => process.stdout.write(JSON.stringify(event) + "\n");
const fromText = (text) => (text === null ? null : Buffer.from(text, "base64"));

function connectTo(bootstrap) {
  return new Kafka({
    clientId: "compat", brokers: [bootstrap], logLevel: logLevel.WARN, logCreator: () => ({ log }) => console.error(JSON.stringify(log)),
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 20 },
  });
}

async function member(bootstrap, groupId, topic, assignor, sessionTimeout, heartbeatInterval) {
  if (assignor !== "roundrobin") throw new Error(`kafkajs brings no assignor ${assignor}`);
  const consumer = connectTo(bootstrap).consumer({
    groupId, sessionTimeout: Number(sessionTimeout), heartbeatInterval: Number(heartbeatInterval), rebalanceTimeout: 10000,
    maxWaitTimeInMs: 100, metadataMaxAge: 1000,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => emit({ owns: [...(payload.memberAssignment[topic] ?? [])].sort() }));
  consumer.on(consumer.events.REBALANCING, () => emit({ owns: [] }));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const eachBatch = async ({ batch, isRunning, isStale, resolveOffset, heartbeat }) => {
    if (!isRunning() || isStale() || batch.messages.length === 0) return;
    emit({ read: [batch.partition, ...batch.messages.map((message) => Number(message.offset))] });
    resolveOffset(batch.lastOffset());
    try {
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: String(BigInt(batch.lastOffset()) + 1n) }]);
      emit({ committed: true });
    } catch (error) {
      // The member was removed. A consumer that gets this error here stops; one that gets it from a heartbeat rejoins.
      emit({ rejected: String(error) });
    }
    await heartbeat();
  };
  await consumer.run({ autoCommit: false, eachBatch });
  process.stdin.on("end", async () => {
    await consumer.disconnect();
    process.exit(0);
  });
  process.stdin.resume();
}

async function produce(bootstrap, topic, codec) {
  const producer = connectTo(bootstrap).producer({ idempotent: true });
  const messages = [];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { partition, key, value, headers } = JSON.parse(line);
    const named = {};
    for (const header of headers) named[header.name] = fromText(header.value);
    messages.push({ partition, key: fromText(key), value: fromText(value), headers: named });
  }
  await producer.connect();
  const compression = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }[codec];
  const sent = await producer.send({ topic, messages, acks: -1, compression });
  emit({ sent: Object.fromEntries(sent.map((response) => [response.partition, Number(response.baseOffset)])) });
  await producer.disconnect();
}

const [word, ...rest] = process.argv.slice(2);
({ member, produce })[word](...rest).catch((error) => {
  console.error(error);
  process.exit(1);
});
