import { expect, test, vi } from 'vitest'
import { memoryBlobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import type { JobOutput } from '../../src/core/engine/job/job.js'
import type { AudioPeaks } from '../../src/core/engine/ports/audio-peaks.js'
import { resultPeaks } from '../../src/core/engine/queries/result-peaks.js'

/** Peaks whose measurements end when the test says so; `measured` names those that have begun. */
function peaks() {
  const blobs = memoryBlobs()
  const opened = vi.spyOn(blobs, 'get')
  const measured: string[] = []
  const ends = new Map<string, (json: string) => void>()
  const measure: AudioPeaks = ({ fileName }, signal) =>
    new Promise((resolve, reject) => {
      measured.push(fileName)
      const onAbort = () => {
        measured.push(`${fileName} stopped`)
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort)
      ends.set(fileName, (json) => {
        signal.removeEventListener('abort', onAbort)
        resolve(json)
      })
    })
  const all = resultPeaks(blobs, measure)
  const job = async (app: string, ...names: string[]) => {
    const outputs: Record<string, JobOutput> = {}
    for (const name of names) {
      const key = `results/${app}/${name}`
      await blobs.put(key, 'sound')
      outputs[name] = { key, fileName: `${app}${name}`, contentType: 'audio/wav', bytes: 5, copied: false }
    }
    return sampleJob({ app, status: 'SUCCEEDED', outputs })
  }
  const openedFiles = () => opened.mock.calls.map(([key]) => key).filter((key) => !key.includes('peaks'))
  return { all, job, measured, openedFiles, end: (name: string) => ends.get(name)?.('{}') }
}

const names = Array.from({ length: 30 }, (_, index) => String(index))

test('one application measures one file at a time, and those of another in parallel', async () => {
  const { all, job, measured, openedFiles, end } = peaks()
  const busy = await job('a', ...names)
  const waiting = names.slice(0, 21).map((name) => all(busy, name))
  await vi.waitFor(() => expect(measured).toEqual(['a0']))
  // Waiting measurements keep no file open.
  expect(openedFiles()).toEqual(['results/a/0'])
  const theirs = all(await job('b', 'x'), 'x')
  await vi.waitFor(() => expect(measured).toEqual(['a0', 'bx']))
  end('bx')
  expect(await theirs).toBe('{}')
  await expect(all(busy, '29')).rejects.toMatchObject({ code: 'RATE_LIMITED' })
  for (const name of names.slice(0, 21)) {
    await vi.waitFor(() => expect(measured).toContain(`a${name}`))
    end(`a${name}`)
  }
  expect(await Promise.all(waiting)).toEqual(Array.from({ length: 21 }, () => '{}'))
})

test('several readers share a measurement, which stops when the last of them has left', async () => {
  const { all, job, measured, end } = peaks()
  const own = await job('a', '0', '1')
  const [first, second] = [new AbortController(), new AbortController()]
  const readers = [all(own, '0', first.signal), all(own, '0', second.signal)]
  const next = new AbortController()
  const waiting = all(own, '1', next.signal)
  await vi.waitFor(() => expect(measured).toEqual(['a0']))
  first.abort(new Error('left'))
  await expect(readers[0]).rejects.toThrow('left')
  expect(measured).toEqual(['a0'])
  // An aborted reader that waits for its turn leaves the turn to others.
  next.abort(new Error('left too'))
  await expect(waiting).rejects.toThrow('left too')
  second.abort(new Error('left'))
  await expect(readers[1]).rejects.toThrow('left')
  await vi.waitFor(() => expect(measured).toEqual(['a0', 'a0 stopped']))
  // A later reader restarts the measurement.
  const again = all(own, '0')
  await vi.waitFor(() => expect(measured).toEqual(['a0', 'a0 stopped', 'a0']))
  end('a0')
  expect(await again).toBe('{}')
})
