import assert from 'node:assert/strict'
import { accepted, changesNothing, claimed, succeed, together } from '../job-samples.js'
import type { JobStoreContext } from '../job-store-context.js'
import type { Cases } from '../suite.js'

const messages = [
  { id: 'message-1', url: 'https://example.com/hook', event: 'job.succeeded' },
  { id: 'message-2', url: 'https://example.com/hook', event: 'job.ended' },
]

export const deliveryCases = {
  async 'no simultaneous change of one record is lost'({ store }) {
    const running = await claimed(store)
    await store.apply(
      running.id,
      succeed(running, {
        messages: Array.from({ length: 12 }, (_, n) => ({ id: `m${n}`, url: 'https://example.com', event: 'e' })),
      }),
    )
    await together(12, (n) =>
      store.apply(running.id, { kind: 'endDelivery', deliveryId: `m${n}`, outcome: 'delivered', status: 200 + n }),
    )
    const job = await store.get(running.id)
    assert.deepEqual(
      job?.deliveries.map(({ outcome, lastStatus }) => [outcome, lastStatus]),
      Array.from({ length: 12 }, (_, n) => ['delivered', 200 + n]),
      'All of twelve simultaneous changes of one record are kept.',
    )
  },

  async 'webhook messages of an end are stored with it, and each delivery attempt begins only once'({ store }) {
    const running = await claimed(store)
    const { id } = running
    const ended = await store.apply(id, succeed(running, { messages }))
    assert.ok(ended?.completedAt, 'Success with webhook messages is accepted.')
    assert.deepEqual(
      ended.deliveries,
      messages.map((message) => ({
        ...message,
        occurredAt: ended.completedAt,
        attempts: 0,
        nextAttemptAt: ended.completedAt,
        outcome: 'pending',
        lastStatus: null,
      })),
      'The messages of an end are stored with it, pending and due at once.',
    )
    const begin = { kind: 'beginDelivery', deliveryId: 'message-1', attempts: 0, retryInMs: 500 } as const
    assert.equal(
      (await accepted(8, () => store.apply(id, begin))).length,
      1,
      'Exactly one of eight simultaneous calls to begin a delivery attempt is accepted.',
    )
    const delivered = await store.apply(id, {
      kind: 'endDelivery',
      deliveryId: 'message-1',
      outcome: 'delivered',
      status: 204,
    })
    assert.deepEqual(
      delivered?.deliveries.map(({ attempts, outcome, lastStatus }) => [attempts, outcome, lastStatus]),
      [
        [1, 'delivered', 204],
        [0, 'pending', null],
      ],
      'Beginning an attempt counts it, and ending it stores the outcome, for this message alone.',
    )
    assert.ok(delivered, 'The end of a delivery attempt is accepted.')
    await changesNothing(store, delivered, [
      { kind: 'endDelivery', deliveryId: 'message-1', outcome: 'gone', status: 410 },
      { kind: 'beginDelivery', deliveryId: 'message-1', attempts: 1, retryInMs: 1 },
      { kind: 'beginDelivery', deliveryId: 'message-2', attempts: 1, retryInMs: 1 },
      { kind: 'beginDelivery', deliveryId: 'unknown', attempts: 0, retryInMs: 1 },
    ])
  },
} satisfies Cases<JobStoreContext>
