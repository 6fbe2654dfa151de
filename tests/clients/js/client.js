// One conversation of KafkaJS with a broker; prints what it saw as JSON.
const { Kafka, logLevel, CompressionTypes, Partitioners } = require("kafkajs");

async function main(address, topic) {
  const kafka = new Kafka({ clientId: "js", brokers: [address], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const saw = {};
  const wanted = { topic, numPartitions: 3, configEntries: [{ name: "retention.ms", value: "100000" }] };
  saw.created = [await admin.createTopics({ topics: [wanted] }), await admin.createTopics({ topics: [wanted] })];

  const createPartitioner = Partitioners.DefaultPartitioner;
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner });
  await producer.connect();
  for (let round = 0; round < 10; round++) {
    const messages = Array.from({ length: 100 }, (_, k) => ({
      key: `k${k}`,
      value: `v${round}`,
      headers: { one: "a", two: ["b", "c"] },
    }));
    const compression = round % 2 ? CompressionTypes.GZIP : CompressionTypes.None;
    await producer.send({ topic, compression, acks: -1, messages });
  }

  const transactional = kafka.producer({
    transactionalId: `${topic}-tx`, idempotent: true, maxInFlightRequests: 1, createPartitioner,
  });
  await transactional.connect();
  let transaction = await transactional.transaction();
  await transaction.send({ topic, messages: [{ key: "k1", value: "aborted" }] });
  await transaction.abort();
  transaction = await transactional.transaction();
  await transaction.send({ topic, messages: [{ key: "k1", value: "committed" }] });
  await transaction.sendOffsets({
    consumerGroupId: `${topic}-sent`, topics: [{ topic, partitions: [{ partition: 0, offset: "5" }] }],
  });
  await transaction.commit();

  const groupId = `${topic}-group`;
  const consumer = kafka.consumer({ groupId, readUncommitted: false });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  let count = 0;
  saw.values = {};
  await consumer.run({
    eachMessage: async ({ message }) => {
      const value = message.value.toString();
      saw.values[value] = (saw.values[value] || 0) + 1;
      count++;
      if (value !== "committed") saw.headers = Object.keys(message.headers);
    },
  });
  for (let wait = 0; wait < 300 && count < 1001; wait++) await new Promise((r) => setTimeout(r, 100));
  saw.state = (await admin.describeGroups([groupId])).groups[0].state;
  await consumer.disconnect();

  const ends = await admin.fetchTopicOffsets(topic);
  saw.records = ends.reduce((sum, one) => sum + Number(one.high), 0);
  const sent = await admin.fetchOffsets({ groupId: `${topic}-sent`, topics: [topic] });
  saw.sent = sent[0].partitions.find((one) => one.partition === 0).offset;
  await admin.resetOffsets({ groupId, topic, earliest: true });
  const configNames = ["retention.ms"];
  const resources = [{ type: 2, name: topic, configNames }];
  await admin.alterConfigs({
    validateOnly: false, resources: [{ type: 2, name: topic, configEntries: [{ name: "retention.ms", value: "200000" }] }],
  });
  saw.retention = (await admin.describeConfigs({ resources })).resources[0].configEntries[0].configValue;
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] });
  saw.partitions = (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "10" }] });
  let offsets;
  for (let wait = 0; !offsets; wait++) {
    try {
      offsets = await admin.fetchTopicOffsets(topic);
    } catch (problem) {
      // Kafka answers for new partitions a moment after it has made them.
      if (problem.type !== "NOT_LEADER_FOR_PARTITION" || wait > 50) throw problem;
      await new Promise((r) => setTimeout(r, 100));
    }
  }
  saw.low = offsets.find((one) => one.partition === 0).low;
  saw.deleted = (await admin.deleteGroups([groupId]))[0].errorCode;
  await admin.deleteTopics({ topics: [topic] });
  await Promise.all([producer.disconnect(), transactional.disconnect(), admin.disconnect()]);
  console.log(JSON.stringify(saw));
}

main(process.argv[2], process.argv[3]).catch((problem) => {
  console.error(problem);
  process.exit(1);
});
