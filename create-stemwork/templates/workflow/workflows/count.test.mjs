import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runWorkflow } from 'stemwork/testing'
import count from './count.mjs'

const inputs = { inputUrl: Buffer.from('One word, and one more') }

test('counts words', async () => {
  const { status, outputs } = await runWorkflow(count, { inputs })
  assert.equal(status, 'SUCCEEDED')
  assert.deepEqual(JSON.parse(String(outputs.report)), { one: 2, word: 1, and: 1, more: 1 })
})

test('continues after its process is killed, and after a failure', async () => {
  const failures = { read: [new Error('the disk is gone')], count: ['kill'] }
  const { status, steps } = await runWorkflow(count, { inputs, failures })
  assert.equal(status, 'SUCCEEDED')
  assert.equal(steps.length, 2)
})

test('refuses a text without words at once', async () => {
  const { error, attempts } = await runWorkflow(count, { inputs: { inputUrl: Buffer.from('1, 2') } })
  assert.equal(error?.code, 'BAD_INPUT')
  assert.equal(attempts, 1)
})
