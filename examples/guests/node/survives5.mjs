/**
 * An ordinary application under test, with the official Node.js client of RocketMQ 5.
 *
 *     npm --prefix examples/guests/node install
 *     rmqemu up examples/guests/proxies.toml --exec node examples/guests/node/survives5.mjs
 */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

import client from 'rocketmq-client-nodejs';
import definitions from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';

const { ConsumeResult, Producer, PushConsumer, SimpleConsumer } = client;
const { TransactionResolution } = definitions;

const ORDERS = 'Orders';
const IN_ORDER = 'OrdersInOrder';
const LATER = 'LaterOrders';
const PAID = 'PaidOrders';
const TOPICS = [ORDERS, IN_ORDER, LATER, PAID];
const PER_STEP = 20;
const ACKNOWLEDGED_WITHIN_MS = 60_000;
const CONSUMED_WITHIN_MS = 120_000;
const DELAY_MS = 5_000;
const INVISIBLE_MS = 30_000;
const STEPS = [
  ['kill', 'broker-b'], ['start', 'broker-b'],
  ['kill', 'proxy-1'], ['start', 'proxy-1'],
  ['suspend', 'broker-a'], ['resume', 'broker-a'],
];

const silent = { debug() {}, info() {}, warn() {}, error() {} }; // else the client writes its log to the home directory
const common = { namespace: '', logger: silent };
// Two defects of this client. It takes a list of addresses, but looks the whole list up as a name: so producer and consumers
// get the address of one proxy each. And started with several topics, it waits for settings which it has already: so each
// is started with one topic.
const [proxyOfConsumers, proxyOfProducer] = process.env.RMQEMU_ENDPOINTS.split(';');
const acknowledged = [];
const consumed = new Map();

/** Break the cluster, or heal it, as in its console. */
function rmqemu(...words) {
  execFileSync('rmqemu', ['ctl', '--run', process.env.RMQEMU_RUN, ...words], { stdio: 'inherit' });
}

function consume(message) {
  const order = message.body.toString();
  if (!consumed.has(order)) {
    consumed.set(order, Date.now());
  }
  return ConsumeResult.SUCCESS;
}

/** Send a message until it is acknowledged. */
async function send(producer, topic, order, more = {}) {
  const deadline = Date.now() + ACKNOWLEDGED_WITHIN_MS;
  for (;;) {
    try {
      await producer.send({ topic, body: Buffer.from(order), ...more });
      acknowledged.push(order);
      return;
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await sleep(500);
    }
  }
}

async function sendPaid(producer, order) {
  const transaction = producer.beginTransaction();
  await producer.send({ topic: PAID, body: Buffer.from(order) }, transaction);
  await transaction.commit();
  acknowledged.push(order);
}

/** Send a delayed message, and take it back. */
async function recall(producer, due) {
  const receipt = await producer.send({ topic: LATER, body: Buffer.from('recalled'), deliveryTimestamp: new Date(due) });
  await producer.recallMessage(LATER, receipt.recallHandle);
}

/** Receive what is there for a simple consumer, until something came, and acknowledge it. */
async function receive(consumer) {
  const deadline = Date.now() + CONSUMED_WITHIN_MS;
  const received = [];
  while (received.length === 0 && Date.now() < deadline) {
    for (const message of await consumer.receive(16, INVISIBLE_MS)) {
      received.push(message.body.toString());
      await consumer.ack(message);
    }
  }
  return received;
}

async function sendOrders(producer) {
  for (let i = 0; i < PER_STEP; i++) {
    await send(producer, ORDERS, `order-${acknowledged.length}`);
  }
}

const missing = () => acknowledged.filter(order => !consumed.has(order));

async function awaitAll() {
  const deadline = Date.now() + CONSUMED_WITHIN_MS;
  while (missing().length > 0 && Date.now() < deadline) {
    await sleep(100);
  }
  assert.deepEqual(missing(), [], `these of ${acknowledged.length} orders were not consumed`);
}

const producer = new Producer({
  ...common,
  endpoints: proxyOfProducer,
  topics: [ORDERS],
  checker: { check: async () => TransactionResolution.COMMIT },
});
await producer.startup();
for (const topic of TOPICS) {
  const billing = new PushConsumer({
    ...common,
    endpoints: proxyOfConsumers,
    consumerGroup: `node-billing-${topic}`,
    subscriptions: new Map([[topic, '*']]),
    messageListener: { consume },
  });
  await billing.startup();
}
const audit = new SimpleConsumer({
  ...common,
  endpoints: proxyOfConsumers,
  consumerGroup: 'node-audit',
  subscriptions: new Map([[IN_ORDER, '*']]),
  awaitDuration: 5_000,
});
await audit.startup();

await send(producer, IN_ORDER, 'fifo', { messageGroup: 'customer-1' });
const due = Date.now() + DELAY_MS;
await send(producer, LATER, 'delayed', { deliveryTimestamp: new Date(due) });
await recall(producer, due);
await sendPaid(producer, 'paid');
await sendOrders(producer);
for (const step of STEPS) {
  rmqemu(...step);
  await sendOrders(producer);
}
await awaitAll();
assert.ok(consumed.get('delayed') >= due, 'the delayed order came early');
assert.ok(!consumed.has('recalled'), 'the recalled order came');
assert.deepEqual(await receive(audit), ['fifo']);
console.log(`${acknowledged.length} orders were sent and consumed`);
process.exit(0); // without a shutdown, which may wait for calls under way
