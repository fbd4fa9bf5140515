import { expect, test } from 'vitest'
import { ClaimLine } from '../../../src/core/engine/dispatch/claim-line.js'

/** Claims that are answered by the test, in the order in which they were sent. */
function line() {
  const claims = new ClaimLine<string>()
  const sent: { answer(job: string | undefined): void; fail(error: Error): void }[] = []
  const next = (wakes: number) =>
    claims.next(wakes, () => new Promise((answer, fail) => void sent.push({ answer, fail })))
  return { next, sent }
}

test('four claims run at a time; the next one is sent when one is answered', async () => {
  const { next, sent } = line()
  const results = Array.from({ length: 6 }, () => next(0))
  expect(sent).toHaveLength(4)
  sent[1]!.answer('b')
  expect(await results[1]).toBe('b')
  await expect.poll(() => sent.length).toBe(5)
  sent[0]!.fail(new Error('no store'))
  await expect(results[0]).rejects.toThrow('no store')
  await expect.poll(() => sent.length).toBe(6)
  sent[5]!.answer('f')
  expect(await results[5]).toBe('f')
})

test('when nothing is found, those queued find nothing either, unless they were woken since', async () => {
  const { next, sent } = line()
  for (const _ of [1, 2, 3, 4]) void next(1)
  const [earlier, same, woken, behind] = [next(0), next(1), next(2), next(1)]
  sent[0]!.answer(undefined)
  expect(await earlier).toBeUndefined()
  expect(await same).toBeUndefined()
  await expect.poll(() => sent.length).toBe(5)
  sent[4]!.answer('for the woken')
  expect(await woken).toBe('for the woken')
  await expect.poll(() => sent.length).toBe(6)
  sent[5]!.answer('for the last')
  expect(await behind).toBe('for the last')
})

test('one claim after the other is answered, with a job or without', async () => {
  const { next, sent } = line()
  for (const job of ['a', undefined, 'b', undefined, 'c', 'd']) {
    const claim = next(0)
    sent.at(-1)!.answer(job)
    expect(await claim).toBe(job)
  }
  expect(sent).toHaveLength(6)
})

test('the last one queued is not sent if it would find nothing', async () => {
  const { next, sent } = line()
  const claims = [next(1), next(1), next(1), next(1), next(1)]
  sent[0]!.answer(undefined)
  expect(await claims[4]).toBeUndefined()
  expect(await claims[0]).toBeUndefined()
  expect(sent).toHaveLength(4)
})
