import { createHash } from 'node:crypto'
import { copyFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { RunCheckpoint, WorkOrder } from '../../src/core/engine/ports/runner.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import type { Checkpoint, KeptPart } from '../../src/core/engine/workflow/checkpoint.js'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { type FilesIndex, readFilesIndex } from '../../src/core/workflows/separation/checkpoint/files-checkpoint.js'
import { readIndex } from '../../src/core/workflows/separation/checkpoint/part-file.js'
import { SeparationCheckpoint } from '../../src/core/workflows/separation/checkpoint/separation-checkpoint.js'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { FloatPool } from '../../src/core/media/dsp/float-pool.js'
import { resample } from '../../src/core/media/dsp/resample.js'
import { segments, segmentStart } from '../../src/core/media/dsp/segment.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { runPipeline, type PipelineMember } from '../../src/core/workflows/separation/pipeline/pipeline.js'
import type { Network } from '../../src/core/models/session/network.js'
import { stemsWorkflow } from '../../src/core/workflows/separation/stems-workflow.js'
import { orderOf } from '../runner/run-order.js'
import { manifestOf } from './architecture-run.js'
import { testNetworks } from './networks.js'
import { noise, streamOf, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

async function sha256Of({ path }: { path: string }): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
}

describe('a separation whose process is killed', () => {
  const workflow = stemsWorkflow({ threads: 1 })
  const seconds = 28
  /** How often runs said that they keep no more. */
  let stops = 0
  let song: string
  beforeAll(async () => {
    song = join(folder, 'song.wav')
    const sampleCount = seconds * 44_100
    await writeWav(song, [noise(sampleCount, 1), noise(sampleCount, 2)], 44_100, '16')
  })

  async function order(parts: KeptPart[], params = {}, maxBytes = 1e9): Promise<WorkOrder> {
    const checkpoint = { parts, afterMs: 0, everyMs: 1, maxBytes }
    return { ...(await orderOf(workflow, { inputUrl: song }, folder, params)), checkpoint }
  }

  /** The parts of a run that is killed twice, whose files must equal those of an uninterrupted run. */
  async function partsOfKilled(format: string): Promise<KeptPart[]> {
    const whole = await finish(await order([], { format }))
    const parts: KeptPart[] = []
    await killAtPart(await order([], { format }), parts)
    await killAtPart(await order([...parts], { format }), parts)
    const resumed = await finish(await order([...parts], { format }), parts)
    for (const stem of ['vocals', 'accompaniments'] as const)
      expect(await sha256Of(resumed.outputs[stem]!)).toBe(await sha256Of(whole.outputs[stem]!))
    expect(resumed.details).toMatchObject({ seconds, clippedSamples: whole.details.clippedSamples })
    return parts
  }

  it.each(['16', 'aiff24'])(
    'continues its %s files in another process, twice, the same to the byte',
    async (format) => {
      const parts = await partsOfKilled(format)
      // Each part begins where the previous one ends, so nothing was written twice.
      const indices = await Promise.all(parts.map(({ path, bytes }) => readFilesIndex(path, bytes)))
      expect(indices.length).toBeGreaterThanOrEqual(3)
      for (const [number, { segments, files }] of indices.entries()) {
        const before = number === 0 ? undefined : indices[number - 1]
        expect(segments).toBeGreaterThan(before?.segments ?? 0)
        expect(files.map(({ from }) => from)).toEqual(files.map(({ stem }) => fileOf(before, stem)?.bytes ?? 0))
        // The same is true of their peaks, which need not be measured again.
        const peaksBefore = files.map(({ stem }) => fileOf(before, stem)?.peaks?.bytes ?? 0)
        expect(files.map(({ peaks }) => peaks?.from)).toEqual(peaksBefore)
        // Two bytes per 512 samples, and a header.
        for (const { stem, peaks } of files) expect(peaks?.bytes, stem).toBeGreaterThan(24 + (2 * 44100) / 512)
      }
    },
  )

  it('says so once when its checkpoint is full, and its files are the same', async () => {
    const whole = await finish(await order([]))
    const parts: KeptPart[] = []
    stops = 0
    const full = await finish(await order(parts, {}, 1), parts)
    expect([stops, parts]).toEqual([1, []])
    expect(await sha256Of(full.outputs.vocals!)).toBe(await sha256Of(whole.outputs.vocals!))
  })

  const fileOf = (index: FilesIndex | undefined, stem: string) => index?.files.find((file) => file.stem === stem)

  it('continues at its last segment if the files are compressed, and they are the same to the byte', async () => {
    const parts = await partsOfKilled('flac')
    // No kept segment was estimated again.
    const kept: number[] = []
    for (const { path, bytes } of parts) {
      const { segments } = await readIndex(path, bytes)
      kept.push(...segments.map(({ segment }) => segment))
    }
    expect(kept.length).toBeGreaterThanOrEqual(3)
    expect(kept).toEqual(kept.map((_, index) => index))
  })

  // One process for all runs that are not killed.
  const finisher = processRunner({ resolve: () => workflow, niceness: 0 })
  afterAll(() => finisher.close())
  function finish(work: WorkOrder, parts: KeptPart[] = []) {
    return finisher.run(work, options(work, parts, new AbortController().signal))
  }

  /** Kills at the first part: a second one may hold all the rest, so the next process would have nothing to keep. */
  async function killAtPart(work: WorkOrder, parts: KeptPart[]): Promise<void> {
    const runner = processRunner({ resolve: () => workflow, niceness: 0 })
    const kill = new AbortController()
    const count = parts.length
    // Before the part is copied: otherwise the process would continue meanwhile, perhaps to the end.
    const onPart = () => kill.abort(new Error('killed'))
    try {
      await expect(runner.run(work, options(work, parts, kill.signal, onPart))).rejects.toThrow('killed')
      await vi.waitUntil(() => parts.length > count)
    } finally {
      await runner.close()
    }
  }

  /** Run options that keep the parts outside the run's folder. */
  function options(work: WorkOrder, parts: KeptPart[], signal: AbortSignal, onPart = () => {}) {
    const checkpoint: RunCheckpoint = {
      handBack: new AbortController().signal,
      stopped: () => void stops++,
      async store(part) {
        onPart()
        const path = join(folder, `kept-${parts.length}`)
        await copyFile(join(work.directory, `checkpoint-${part}`), path)
        parts.push({ path, bytes: (await stat(path)).size })
      },
    }
    return { signal, onProgress: () => {}, checkpoint }
  }
})

describe('a checkpoint of several passes', () => {
  const load = testNetworks()
  const manifest = manifestOf('mdx', { stft: { nFft: 256, hop: 64 }, primary: 'vocals' })
  const tracks = [noise(60_000, 3), noise(60_000, 4)]

  /** Separates with one model twice, once with a delay, in batches. */
  async function separate(checkpoint: Checkpoint | undefined, fingerprint = 'same', stopAfter = Infinity) {
    const network = await load({
      inputs: [{ name: 'input', shape: ['batch', 4, 129, 40] }],
      outputs: [{ name: 'output', shape: ['batch', 4, 129, 40] }],
      nodes: [{ operator: 'Mul', inputs: ['input', 'gain'], outputs: ['output'] }],
      constants: [{ name: 'gain', dims: [1], values: [0.3] }],
    })
    let runs = 0
    const counted: Network = {
      ...network,
      inputs: network.inputs,
      outputs: network.outputs,
      isOpen: true,
      run: async (feeds, fetches) => {
        if (++runs > stopAfter) throw new Error('killed')
        return await network.run(feeds, fetches)
      },
      close: async () => {},
    }
    const directory = await mkdtemp(join(folder, 'passes-'))
    const kept =
      checkpoint &&
      (await SeparationCheckpoint.open({ checkpoint, directory, passes: 2, fingerprint: async () => fingerprint }))
    const architecture = await createArchitecture(manifest, [counted])
    const members = [0, 500].map((delaySamples, index): PipelineMember => ({
      architecture,
      networks: [counted],
      stream: streamOf(tracks),
      delaySamples,
      batch: 2,
      kept: kept?.pass(index),
    }))
    const out: number[] = []
    try {
      await runPipeline(members, {
        sink: async ({ vocals = [], accompaniments = [] }) => {
          for (const plane of [...vocals, ...accompaniments]) out.push(plane.length, ...plane)
        },
      })
    } catch (error) {
      if (!String(error).includes('killed')) throw error
    } finally {
      await kept?.close()
      architecture.close()
    }
    return { out, runs }
  }

  /** A checkpoint that keeps a part at every opportunity. */
  function memory(parts: KeptPart[]): Checkpoint {
    return {
      parts: [...parts],
      isOn: true,
      isDue: () => true,
      async keep(path) {
        const target = join(folder, `part-${crypto.randomUUID()}`)
        await copyFile(path, target)
        await rm(path)
        parts.push({ path: target, bytes: (await stat(target)).size })
      },
      stop() {
        throw new Error('the checkpoint was stopped')
      },
      restart: () => void parts.splice(0),
    }
  }

  // Hundreds of thousands of numbers, for which `toEqual` takes seconds.
  const isSame = (one: number[], other: number[]) =>
    one.length === other.length && one.every((value, index) => value === other[index])

  it('continues in all of them, with the same blocks and samples', async () => {
    const whole = await separate(undefined)
    const parts: KeptPart[] = []
    await separate(memory(parts), 'same', 6)
    const second = await separate(memory(parts), 'same', 4)
    const last = await separate(memory(parts))
    expect(isSame(last.out, whole.out)).toBe(true)
    expect(second.runs).toBeGreaterThan(0)
    // Only the two segments in flight of each pass are repeated, at each of the two kills.
    expect(6 + 4 + last.runs).toBeLessThanOrEqual(whole.runs + 2 * 4 + 2)
    expect(last.runs).toBeLessThan(whole.runs)
  })

  it('that belongs to other work or is damaged is ignored', async () => {
    const whole = await separate(undefined)
    const parts: KeptPart[] = []
    await separate(memory(parts), 'same', 6)
    expect(parts.length).toBeGreaterThan(0)
    const [first] = parts
    const other = await separate(memory([...parts]), 'other')
    expect(other.runs).toBe(whole.runs)
    expect(isSame(other.out, whole.out)).toBe(true)
    const cut = await separate(memory([{ path: first?.path ?? '', bytes: (first?.bytes ?? 0) - 5 }]))
    expect(cut.runs).toBe(whole.runs)
    expect(isSame(cut.out, whole.out)).toBe(true)
  })
})

describe('a stream that begins in the middle of a track', () => {
  it.each([
    ['read from there', 'wav', 44_100],
    ['decoded up to there', 'mp3', 44_100],
    ['resampled up to there', 'wav', 32_000],
  ])('gives the same segments, %s', async (_, format, sampleRate) => {
    const path = join(folder, `track-${sampleRate}.${format}`)
    const options = { sampleRate, channels: 2, format: format === 'mp3' ? ('mp3' as const) : ('16' as const) }
    const encoder = await openEncoder(path, options)
    await encoder.write([noise(90_000, 5), noise(90_000, 6)])
    await encoder.close()
    const geometry = { step: 9_000, before: 1_500, length: 12_000 }
    const cut = async (firstIndex: number) => {
      const seek = { sample: segmentStart(firstIndex, geometry), sampleRate: 44_100 }
      const opened = await openAudio(path, { seek })
      const { blocks, firstSample } = resample(opened, 44_100)
      const found: { index: number; start: number; planes: string }[] = []
      for await (const { index, start, planes } of segments(blocks, geometry, 2, new FloatPool(), {
        firstIndex,
        firstSample,
      }))
        found.push({ index, start, planes: hashOf(planes) })
      return { found, firstSample }
    }
    const whole = await cut(0)
    const rest = await cut(5)
    expect(rest.found).toEqual(whole.found.slice(5))
    expect(rest.found.length).toBeGreaterThan(3)
    expect(rest.firstSample ?? 0).toBe(format === 'wav' && sampleRate === 44_100 ? 43_500 : 0)
  })

  function hashOf(planes: readonly Float32Array[]): string {
    const hash = createHash('sha256')
    for (const plane of planes) hash.update(new Uint8Array(plane.buffer, plane.byteOffset, plane.byteLength))
    return hash.digest('hex')
  }
})
