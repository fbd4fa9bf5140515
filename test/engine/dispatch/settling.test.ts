import { describe, expect, test } from 'vitest'
import { withFaults } from '../../../src/contract/faults.js'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import { keys, testEngine, textOf, textWorkflow } from '../harness.js'

/** A store that makes the given change but loses its answer. */
function losingAnswers(kind: JobChange['kind'], times: number) {
  const jobs = memoryJobs()
  let left = times
  const faulty = withFaults(jobs, ({ method, args, moment }) =>
    method === 'apply' && moment === 'after' && (args[1] as JobChange).kind === kind && left-- > 0
      ? new Error('the answer was lost')
      : undefined,
  )
  return { jobs, faulty }
}

describe('the end of a run whose confirmation is lost', () => {
  test('counts once, and its files are kept', async () => {
    const { faulty } = losingAnswers('succeed', 1)
    const blobs = memoryBlobs()
    const { engine, events, submit } = testEngine(textWorkflow(), {}, { jobs: faulty, blobs })
    const job = await submit()
    const ended = await engine.run(job.id)
    expect(ended).toMatchObject({ status: 'SUCCEEDED', token: 1 })
    expect(await textOf(blobs, ended?.outputs?.text!.key ?? '')).toBe(`text of ${job.id}`)
    expect(events.filter((name) => name === 'job.succeeded')).toHaveLength(1)
  })

  test('keeps its files even if the store does not come back in time', async () => {
    const { jobs, faulty } = losingAnswers('succeed', Infinity)
    let away = false
    const gone = withFaults(faulty, ({ method, args, moment }) => {
      if (method === 'apply' && moment === 'after' && (args[1] as JobChange).kind === 'succeed') away = true
      return away ? new Error('the store is away') : undefined
    })
    const blobs = memoryBlobs()
    const { engine, submit } = testEngine(
      textWorkflow(),
      { dispatch: { leaseMs: 300, storageOutageMs: 300 } },
      { jobs: gone, blobs },
    )
    const job = await submit()
    expect(await engine.runOnce(job.id)).toBeUndefined()
    const recorded = await jobs.get(job.id)
    expect(recorded?.status).toBe('SUCCEEDED')
    expect(await keys(blobs)).toEqual([recorded?.outputs?.text!.key])
  })

  test('a retry whose confirmation is lost is still run', async () => {
    const { faulty } = losingAnswers('requeue', 1)
    let runs = 0
    const { engine, submit, until } = testEngine(
      textWorkflow(() => {
        if (++runs === 1) throw new Error('the first attempt fails')
      }),
      {},
      { jobs: faulty },
    )
    await engine.start()
    const job = await submit()
    expect(await until(job.id, 'SUCCEEDED')).toMatchObject({ attempts: 2 })
    await engine.close()
  })
})
