import { open, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeptPart } from '../../../engine/workflow/checkpoint.js'
import type { KeptSegments } from '../pipeline/kept-segments.js'
import type { FinishedAudio, OverlapAddState } from '../pipeline/overlap-add.js'
import type { FilesCheckpointOptions } from './files-checkpoint.js'
import {
  appendPlanes,
  appendState,
  checkSpace,
  type KeptPlanes,
  type PartIndex,
  openPart,
  type PartWriter,
  readIndex,
  readPlanes,
  readState,
} from './part-file.js'
import type { TrackCheckpoint } from './track-checkpoint.js'

export interface SeparationCheckpointOptions extends FilesCheckpointOptions {
  /** Passes over the track. */
  passes: number
}

interface Located extends KeptPlanes {
  path: string
}

interface Pass {
  /** By segment. */
  segments: Located[]
  lastState?: Located
  restored?: OverlapAddState
  /** Whether the pass is inside a batch, where a later run could not continue. */
  isInBatch: boolean
  /** The current state, if the pass is beyond the parts that were read. */
  state?: () => OverlapAddState
}

/**
 * The checkpoint of any separation: the finished audio of all segments of its passes, in parts from which any
 * worker can resume. A part holds the samples of the estimated stems; all work that is cheap next to the network
 * (decoding, the other stems, encoding) is done again from them, in the same blocks, so that the files get the same
 * bytes.
 */
export class SeparationCheckpoint implements TrackCheckpoint {
  readonly #options: SeparationCheckpointOptions
  readonly #passes: Pass[]
  #writer: PartWriter | undefined
  #noted: PartIndex['segments'] = []
  #reading: { path: string; file: FileHandle } | undefined

  private constructor(options: SeparationCheckpointOptions) {
    this.#options = options
    this.#passes = Array.from({ length: options.passes }, () => ({ segments: [], isInBatch: false }))
  }

  /** Reads the parts that earlier attempts kept. If one is unreadable or belongs to other work, all are ignored. */
  static async open(options: SeparationCheckpointOptions): Promise<SeparationCheckpoint> {
    const opened = new SeparationCheckpoint(options)
    const { checkpoint } = options
    try {
      for (const part of checkpoint.parts) await opened.#load(part)
      for (const pass of opened.#passes) {
        if (pass.lastState) pass.restored = await readState(await opened.#fileOf(pass.lastState.path), pass.lastState)
        else if (pass.segments.length > 0) throw new Error('a pass of the checkpoint has no state')
      }
      await opened.close()
      return opened
    } catch {
      await opened.close()
      checkpoint.restart()
      return new SeparationCheckpoint(options)
    }
  }

  pass(index: number): KeptSegments {
    const pass = this.#passes[index]
    if (!pass) throw new RangeError(`pass ${index} of ${this.#passes.length} has no checkpoint`)
    return {
      count: pass.segments.length,
      state: pass.restored,
      read: (segment) => this.#read(pass.segments[segment]),
      note: (segment, finished) => this.#note(index, pass, segment, finished),
      keepIfDue: (state) => this.#keepIfDue(pass, state),
    }
  }

  /** Closes the parts and removes the unfinished one. */
  async close(): Promise<void> {
    await this.#reading?.file.close()
    this.#reading = undefined
    await this.#writer?.abandon().catch(() => undefined)
    if (this.#writer) await rm(this.#writer.path, { force: true })
    this.#writer = undefined
  }

  async #load({ path, bytes }: KeptPart): Promise<void> {
    const index = await readIndex(path, bytes)
    if (index.fingerprint !== (await this.#options.fingerprint()))
      throw new Error('the checkpoint belongs to other work')
    for (const planes of index.segments) {
      const pass = this.#passes.at(planes.pass)
      if (pass?.segments.length !== planes.segment) throw new Error('the parts of the checkpoint do not join')
      pass.segments.push({ ...planes, path })
    }
    for (const planes of index.states) {
      const pass = this.#passes.at(planes.pass)
      if (pass) pass.lastState = { ...planes, path }
    }
  }

  async #read(planes: Located | undefined): Promise<FinishedAudio> {
    if (!planes) throw new RangeError('a segment is read that was not kept')
    const { stems } = await readPlanes(await this.#fileOf(planes.path), planes)
    return { start: planes.start, sampleCount: planes.sampleCount, stems }
  }

  /** Parts are read in order, so one is open at a time. */
  async #fileOf(path: string): Promise<FileHandle> {
    if (this.#reading?.path !== path) {
      await this.#reading?.file.close()
      this.#reading = { path, file: await open(path) }
    }
    return this.#reading.file
  }

  async #note(number: number, pass: Pass, segment: number, finished: FinishedAudio): Promise<void> {
    pass.isInBatch = true
    if (!this.#options.checkpoint.isOn) return
    await this.#orStop(async (writer) => {
      this.#noted.push({ segment, ...(await appendPlanes(writer, { pass: number, ...finished })) })
    })
  }

  async #keepIfDue(pass: Pass, state: () => OverlapAddState): Promise<void> {
    pass.isInBatch = false
    pass.state = state
    const { checkpoint } = this.#options
    const isBetween = this.#passes.every(({ isInBatch }) => !isInBatch)
    if (!isBetween || this.#noted.length === 0 || !checkpoint.isDue()) return
    await this.#orStop(async (writer) => {
      const states: PartIndex['states'] = []
      for (const [number, each] of this.#passes.entries()) {
        if (each.state) states.push(await appendState(writer, number, each.state()))
      }
      await writer.finish({ format: 1, fingerprint: await this.#options.fingerprint(), segments: this.#noted, states })
      this.#writer = undefined
      this.#noted = []
      await checkpoint.keep(writer.path)
    })
  }

  /** Keeping stops when the disk is full or nearly full. */
  async #orStop(work: (writer: PartWriter) => Promise<void>): Promise<void> {
    const { checkpoint, directory } = this.#options
    try {
      await checkSpace(directory)
      this.#writer ??= await openPart(join(directory, 'checkpoint.part'))
      await work(this.#writer)
    } catch {
      checkpoint.stop()
      const writer = this.#writer
      this.#writer = undefined
      await writer?.abandon().catch(() => undefined)
      if (writer) await rm(writer.path, { force: true }).catch(() => undefined)
    }
  }
}
