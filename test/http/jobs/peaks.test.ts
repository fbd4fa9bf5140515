import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { audioPeaks } from '../../../src/core/media/pictures/audio-peaks.js'
import { fewerPeaks, type Peaks } from '../../../src/http/jobs/fewer-peaks.js'
import { sine, writeWav } from '../../separation/tracks.js'
import { separated, type Service, startService } from '../harness.js'
import { temporaryFolder } from '../../temporary-folder.js'

const rate = 8000
const seconds = 8

let service: Service
const folder = temporaryFolder()
let song: Buffer
/** A job whose results are an 8-second tone at half of full scale. */
let id: string

beforeAll(async () => {
  await writeWav(join(folder, 'tone.wav'), [sine(seconds * rate, 100, rate, 0.5)], rate, '16')
  song = await readFile(join(folder, 'tone.wav'))
  service = await startService({ audioPeaks: audioPeaks({ directory: folder }) })
  id = await measured(song)
})
afterAll(async () => {
  await service.close()
})

async function measured(bytes: Uint8Array): Promise<string> {
  const { id, status } = await separated(service, bytes)
  expect(status).toBe('SUCCEEDED')
  return id
}

async function problem(path: string, init?: Parameters<Service['api']>[1]): Promise<[number, unknown, unknown]> {
  const response = await service.api(path, init)
  const { code, reason } = (await response.json()) as { code: string; reason?: string }
  return [response.status, code, reason]
}

/** Child processes of this process that measure peaks, the latest last. */
async function measurers(): Promise<string[]> {
  const children = (await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')).trim().split(' ')
  const commands = await Promise.all(children.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return children.filter((_, n) => commands[n]?.includes('audio-peaks-child'))
}

describe('peaks of a result', () => {
  test('are JSON in the format of audiowaveform, cacheable only by this caller', async () => {
    const response = await service.api(`/job/${id}/peaks/vocals`)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      expect.stringMatching(/^application\/json/),
    ])
    expect(response.headers.get('cache-control')).toMatch(/^private, max-age=\d+$/)
    // The key may be in the session's cookie.
    expect(response.headers.get('vary')).toBe('authorization, cookie')
    const { data, ...facts } = (await response.json()) as Peaks
    expect(facts).toEqual({
      version: 2,
      channels: 1,
      sample_rate: rate,
      samples_per_pixel: 256,
      bits: 8,
      length: (seconds * rate) / 256,
    })
    expect(data).toHaveLength(2 * facts.length)
    expect(data.every((value) => Number.isInteger(value) && value >= -128 && value <= 127)).toBe(true)
    const lowest = data.filter((_, index) => index % 2 === 0)
    const highest = data.filter((_, index) => index % 2 === 1)
    // Every stretch of 256 samples holds three periods of the tone.
    expect([Math.min(...lowest), Math.max(...lowest)]).toEqual([-64, expect.closeTo(-64, -1)])
    expect([Math.max(...highest), Math.min(...highest)]).toEqual([64, expect.closeTo(64, -1)])
  })

  test('are merged to the requested number of entries, and say so', async () => {
    const whole = (await (await service.api(`/job/${id}/peaks/vocals`)).json()) as Peaks
    const few = (await (await service.api(`/job/${id}/peaks/vocals?length=96`)).json()) as Peaks
    expect([few.length, few.samples_per_pixel, few.data.length]).toEqual([84, 768, 168])
    expect(few.data.slice(0, 2)).toEqual([
      Math.min(...whole.data.slice(0, 6).filter((_, index) => index % 2 === 0)),
      Math.max(...whole.data.slice(0, 6).filter((_, index) => index % 2 === 1)),
    ])
    expect(await (await service.api(`/job/${id}/peaks/vocals?length=8192`)).json()).toEqual(whole)
    for (const length of ['0', '-1', '1.5', 'x', '8193'])
      expect((await service.api(`/job/${id}/peaks/vocals?length=${length}`)).status).toBe(400)
  })

  test('of no samples stay empty, and of one sample stay one', () => {
    const facts = { version: 2, channels: 1, sample_rate: rate, samples_per_pixel: 256, bits: 8 } as const
    expect(fewerPeaks({ ...facts, length: 0, data: [] }, 10)).toEqual({ ...facts, length: 0, data: [] })
    expect(fewerPeaks({ ...facts, length: 3, data: [-1, 1, -5, 2, 0, 7] }, 1)).toEqual({
      ...facts,
      samples_per_pixel: 768,
      length: 1,
      data: [-5, 7],
    })
  })

  test('need a key, and the key of the application that owns the job', async () => {
    const other = await service.addApplication('Another')
    const path = `/job/${id}/peaks/vocals`
    expect(await problem(path, { key: '' })).toEqual([401, 'UNAUTHORIZED', undefined])
    expect(await problem(path, { key: other.key })).toEqual([404, 'NOT_FOUND', undefined])
  })

  test('do not exist for another output, an unknown job, or a job without results', async () => {
    expect(await problem(`/job/${id}/peaks/drums`)).toEqual([404, 'NOT_FOUND', undefined])
    expect(await problem(`/job/${id}/peaks/__proto__`)).toEqual([404, 'NOT_FOUND', undefined])
    expect(await problem('/job/00000000-0000-4000-8000-000000000000/peaks/vocals')).toEqual([
      404,
      'NOT_FOUND',
      undefined,
    ])
    expect(await problem(`/job/${await service.created()}/peaks/report`)).toEqual([404, 'NOT_FOUND', undefined])
  })

  test('of a file that is not audio are refused with the reason', async () => {
    const damaged = await measured(Buffer.from('RIFF and then nothing that could be played'))
    expect(await problem(`/job/${damaged}/peaks/vocals`)).toEqual([400, 'BAD_INPUT', 'decode_failed'])
  })

  test.runIf(process.platform === 'linux')('are measured by a kept process that is given no secrets', async () => {
    const measurer = async () => {
      const own = await measured(song)
      expect((await service.api(`/job/${own}/peaks/vocals`)).status).toBe(200)
      return (await measurers()).at(-1)
    }
    process.env['STEMWORK_LINK_SECRET'] = 'not for decoders'
    try {
      const pid = await measurer()
      expect(await measurer()).toBe(pid)
      expect(await readFile(`/proc/${pid}/environ`, 'utf8')).not.toContain('not for decoders')
    } finally {
      delete process.env['STEMWORK_LINK_SECRET']
    }
  })

  test('are measured once, and go with the job', async () => {
    const own = await measured(song)
    const path = `/job/${own}/peaks/accompaniments`
    const answers = await Promise.all([1, 2, 3].map(async () => (await service.api(path)).text()))
    expect(new Set(answers).size).toBe(1)
    expect((await service.api(`/job/${own}`, { method: 'DELETE' })).status).toBe(200)
    expect((await service.api(path)).status).toBe(404)
  })
})
